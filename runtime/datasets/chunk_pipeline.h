#ifndef REQUANT_RUNTIME_DATASETS_CHUNK_PIPELINE_H_
#define REQUANT_RUNTIME_DATASETS_CHUNK_PIPELINE_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/formats/chunk_source.h"

namespace requant {

// Reads and decodes chunks ahead of its caller on threads of its own, and hands
// them out in the order of the files. Each thread in turn reads a chunk and
// then decodes it while the next thread reads.
class ChunkPipeline {
 public:
  struct Options {
    int threads = 1;
    int64_t chunk_rows = 1;
    // Threads rest while so many rows are read or decoded and not taken.
    int64_t max_rows_ahead = 1;
  };

  ChunkPipeline(std::unique_ptr<ChunkSource> source, const Options& options);
  // Stops the threads, which finish the chunk that they are at.
  ~ChunkPipeline();
  ChunkPipeline(const ChunkPipeline&) = delete;
  ChunkPipeline& operator=(const ChunkPipeline&) = delete;

  // The next chunk; null at the end of the data. After the end or an error,
  // every call returns that again.
  absl::StatusOr<std::shared_ptr<const Chunk>> Next();

 private:
  using Result = absl::StatusOr<std::shared_ptr<const Chunk>>;

  void Work();
  // Reads a chunk, its number and its position; null when there is nothing more
  // to do.
  std::unique_ptr<RawChunk> Read(int64_t* number, int64_t* position);
  void Publish(int64_t number, Result result);

  const std::unique_ptr<ChunkSource> source_;
  const Options options_;

  // Held by the one thread that reads; taken before mutex_.
  std::mutex read_mutex_;
  bool ended_ = false;
  int64_t next_read_ = 0;

  std::mutex mutex_;
  std::condition_variable room_;
  std::condition_variable ready_;
  bool stopped_ = false;
  int64_t rows_ahead_ = 0;
  int64_t next_taken_ = 0;
  std::map<int64_t, Result> results_;

  std::vector<std::thread> threads_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_CHUNK_PIPELINE_H_
