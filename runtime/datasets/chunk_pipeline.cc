#include "runtime/datasets/chunk_pipeline.h"

#include <utility>

namespace requant {

ChunkPipeline::ChunkPipeline(std::unique_ptr<ChunkSource> source,
                             const Options& options)
    : source_(std::move(source)), options_(options) {
  for (int i = 0; i < options.threads; ++i) {
    threads_.emplace_back([this] { Work(); });
  }
}

ChunkPipeline::~ChunkPipeline() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ChunkPipeline::Publish(int64_t number, Result result) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    results_.emplace(number, std::move(result));
  }
  ready_.notify_one();
}

std::unique_ptr<RawChunk> ChunkPipeline::Read(int64_t* number,
                                              int64_t* position) {
  const std::lock_guard<std::mutex> read_lock(read_mutex_);
  {
    std::unique_lock<std::mutex> lock(mutex_);
    room_.wait(lock, [this] {
      return stopped_ || rows_ahead_ < options_.max_rows_ahead;
    });
    if (stopped_ || ended_) return nullptr;
  }
  absl::StatusOr<std::unique_ptr<RawChunk>> chunk =
      source_->Read(options_.chunk_rows);
  *number = next_read_++;
  *position = source_->position();
  if (chunk.ok() && *chunk != nullptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    rows_ahead_ += (*chunk)->rows();
    return *std::move(chunk);
  }
  ended_ = true;
  Publish(*number, chunk.ok() ? Result(nullptr) : Result(chunk.status()));
  return nullptr;
}

void ChunkPipeline::Work() {
  int64_t number = 0, position = 0;
  while (const std::unique_ptr<RawChunk> raw = Read(&number, &position)) {
    absl::StatusOr<Chunk> chunk = raw->Decode();
    if (chunk.ok()) chunk->position = position;
    Publish(number,
            chunk.ok()
                ? Result(std::make_shared<const Chunk>(*std::move(chunk)))
                : Result(chunk.status()));
  }
}

ChunkPipeline::Result ChunkPipeline::Next() {
  Result result(nullptr);
  {
    std::unique_lock<std::mutex> lock(mutex_);
    ready_.wait(lock, [this] { return results_.count(next_taken_) > 0; });
    const auto next = results_.find(next_taken_);
    result = next->second;
    // The end and an error stay, for the next call.
    if (!result.ok() || *result == nullptr) return result;
    results_.erase(next);
    ++next_taken_;
    rows_ahead_ -= (*result)->rows;
  }
  room_.notify_one();
  return result;
}

}  // namespace requant
