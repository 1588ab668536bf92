#include "runtime/datasets/batch_source.h"

#include <algorithm>
#include <map>
#include <thread>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "base/files/files.h"
#include "base/process/machine.h"
#include "base/records/input_file.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "runtime/datasets/formats/column.h"
#include "runtime/datasets/formats/source_format.h"

namespace requant {
namespace {

using tensorflow::Tensor;

// Chunks are as large as batches, which are then handed out as decoded, unless
// that is too small to be worth a thread's turn or so large that few threads
// share the work.
constexpr int64_t kMinChunkRows = 64;
constexpr int64_t kMaxChunkRows = 4096;

int64_t ChunkRows(int64_t batch_size) {
  if (batch_size >= kMinChunkRows) return std::min(batch_size, kMaxChunkRows);
  return (kMinChunkRows + batch_size - 1) / batch_size * batch_size;
}

int64_t MaxRowsAhead(const BatchOptions& options) {
  const int64_t batches = std::max(1, options.prefetch);
  return options.batch_size > kMaxElements / batches
             ? kMaxElements
             : options.batch_size * batches;
}

std::string NameFiles(const std::vector<std::string>& files) {
  constexpr size_t kMostNamed = 3;
  if (files.size() <= kMostNamed) return absl::StrJoin(files, ", ");
  return absl::StrCat(files[0], " and ", files.size() - 1, " other files");
}

// Returns the files' total size, or 0 if one is not a regular file.
int64_t SizeOfFiles(const std::vector<std::string>& files) {
  int64_t bytes = 0;
  for (const std::string& file : files) {
    const absl::StatusOr<int64_t> size = BytesOf(file);
    if (!size.ok()) return 0;
    bytes += *size;
  }
  return bytes;
}

// Reads and decodes chunks ahead of its caller in its own threads, and hands
// them out in the order of the files. Each thread in turn reads a chunk and
// then decodes it while the next thread reads.
class ChunkPipeline {
 public:
  using Result = absl::StatusOr<std::shared_ptr<const Chunk>>;

  ChunkPipeline(std::unique_ptr<ChunkSource> source,
                const BatchOptions& options)
      : chunk_rows_(ChunkRows(options.batch_size)),
        max_rows_ahead_(MaxRowsAhead(options)),
        source_(std::move(source)) {
    constexpr int kMostThreads = 64;
    const int threads =
        options.threads > 0 ? options.threads : ReadCoreLimits().usable();
    for (int i = 0; i < std::min(kMostThreads, threads); ++i) {
      threads_.emplace_back([this] { Work(); });
    }
  }

  // Stops the threads, which finish their current chunks.
  ~ChunkPipeline() {
    {
      const absl::MutexLock lock(&mutex_);
      stopped_ = true;
    }
    for (std::thread& thread : threads_) thread.join();
  }

  // Returns the next chunk, or null at the end of the data. After the end or an
  // error, every call returns that again.
  Result Next() {
    const absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &ChunkPipeline::IsNextReady));
    const auto next = results_.find(next_taken_);
    const Result result = next->second;
    // The end or an error is kept for the next call.
    if (!result.ok() || *result == nullptr) return result;
    results_.erase(next);
    ++next_taken_;
    rows_ahead_ -= (*result)->rows;
    return result;
  }

 private:
  void Work() {
    int64_t number = 0, position = 0;
    for (;;) {
      const RawChunk raw = Read(&number, &position);
      if (raw.rows == 0) return;
      absl::StatusOr<Chunk> chunk = raw.decode();
      if (chunk.ok()) chunk->position = position;
      Publish(number,
              chunk.ok()
                  ? Result(std::make_shared<const Chunk>(*std::move(chunk)))
                  : Result(chunk.status()));
    }
  }

  // Reads a chunk, its number and its position. The chunk has no rows if there
  // is nothing more to do.
  RawChunk Read(int64_t* number, int64_t* position)
      ABSL_LOCKS_EXCLUDED(read_mutex_, mutex_) {
    const absl::MutexLock read_lock(&read_mutex_);
    {
      const absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &ChunkPipeline::MayRead));
      if (stopped_ || ended_) return RawChunk();
    }
    absl::StatusOr<RawChunk> chunk = source_->Read(chunk_rows_);
    *number = next_read_++;
    *position = source_->position();
    if (chunk.ok() && chunk->rows > 0) {
      const absl::MutexLock lock(&mutex_);
      rows_ahead_ += chunk->rows;
      return *std::move(chunk);
    }
    ended_ = true;
    Publish(*number, chunk.ok() ? Result(nullptr) : Result(chunk.status()));
    return RawChunk();
  }

  void Publish(int64_t number, Result result) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    results_.emplace(number, std::move(result));
  }

  bool MayRead() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopped_ || rows_ahead_ < max_rows_ahead_;
  }
  bool IsNextReady() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return results_.count(next_taken_) > 0;
  }

  const int64_t chunk_rows_;
  // Threads wait while this many rows are read or decoded but not taken.
  const int64_t max_rows_ahead_;

  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t rows_ahead_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_taken_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, Result> results_ ABSL_GUARDED_BY(mutex_);

  // Held by the one thread that reads.
  absl::Mutex read_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  const std::unique_ptr<ChunkSource> source_ ABSL_PT_GUARDED_BY(read_mutex_);
  bool ended_ ABSL_GUARDED_BY(read_mutex_) = false;
  int64_t next_read_ ABSL_GUARDED_BY(read_mutex_) = 0;

  std::vector<std::thread> threads_;
};

class PipelinedBatchSource : public BatchSource {
 public:
  PipelinedBatchSource(const DatasetSpec& spec, const BatchOptions& options,
                       std::vector<Column> columns,
                       std::unique_ptr<ChunkSource> source)
      : spec_(spec),
        options_(options),
        files_(FilesOf(spec)),
        columns_(std::move(columns)),
        total_bytes_(SizeOfFiles(files_)),
        pipeline_(std::make_unique<ChunkPipeline>(std::move(source), options)) {
  }

  absl::StatusOr<bool> Next(Batch* batch) override {
    if (result_.ok() && *result_) {
      result_ = Assemble(batch);
      // No further chunks are requested.
      if (!result_.ok() || !*result_) pipeline_ = nullptr;
    }
    return result_;
  }

  int64_t bad_records() const override { return bad_records_; }
  int64_t lost_rests() const override { return lost_rests_; }

  int64_t EstimatedRecords() const override {
    int64_t records = 0;
    if (position_ > 0 && total_bytes_ > 0) {
      records = static_cast<int64_t>(static_cast<double>(taken_records_) *
                                     total_bytes_ / position_);
      records = std::max<int64_t>(0, records - options_.skip_records);
    }
    if (options_.max_records == 0) return records;
    return records == 0 ? options_.max_records
                        : std::min(records, options_.max_records);
  }

 private:
  // Rows of one chunk that belong to a batch.
  struct Piece {
    std::shared_ptr<const Chunk> chunk;
    int64_t begin = 0;
    int64_t count = 0;
  };

  absl::StatusOr<bool> Assemble(Batch* batch) {
    *batch = Batch();
    int64_t wanted = options_.batch_size;
    if (options_.max_records > 0) {
      wanted = std::min(wanted, options_.max_records - good_records_);
    }
    std::vector<Piece> pieces;
    REQUANT_RETURN_IF_ERROR(SkipRecords());
    while (batch->size < wanted) {
      REQUANT_ASSIGN_OR_RETURN(const bool more, FindGoodRow());
      if (!more) break;
      if (pieces.empty()) batch->first_record = record_;
      const int64_t count =
          std::min(GoodRowsEnd() - row_, wanted - batch->size);
      pieces.push_back({chunk_, row_, count});
      row_ += count;
      record_ += count;
      batch->size += count;
    }
    good_records_ += batch->size;
    if (good_records_ == 0) return NoRecords();
    if (batch->size == 0) return false;
    REQUANT_RETURN_IF_ERROR(FillTensors(pieces, batch));
    return true;
  }

  absl::Status SkipRecords() {
    while (skipped_records_ < options_.skip_records) {
      REQUANT_ASSIGN_OR_RETURN(const bool more, FindGoodRow());
      if (!more) return absl::OkStatus();
      const int64_t count = std::min(GoodRowsEnd() - row_,
                                     options_.skip_records - skipped_records_);
      row_ += count;
      record_ += count;
      skipped_records_ += count;
    }
    return absl::OkStatus();
  }

  // Advances row_ to a good row, in this chunk or a later one. Returns false at
  // the end.
  absl::StatusOr<bool> FindGoodRow() {
    for (;;) {
      if (chunk_ == nullptr || row_ == chunk_->rows) {
        REQUANT_ASSIGN_OR_RETURN(chunk_, pipeline_->Next());
        row_ = 0;
        next_bad_ = 0;
        if (chunk_ == nullptr) return false;
        position_ = chunk_->position;
        taken_records_ += chunk_->rows;
      } else if (row_ == GoodRowsEnd()) {
        REQUANT_RETURN_IF_ERROR(SkipBadRow(chunk_->bad[next_bad_++]));
        ++row_;
        ++record_;
      } else {
        return true;
      }
    }
  }

  // Returns the index of the next bad row, or the chunk's end.
  int64_t GoodRowsEnd() const {
    return next_bad_ < chunk_->bad.size() ? chunk_->bad[next_bad_].row
                                          : chunk_->rows;
  }

  absl::Status SkipBadRow(const BadRow& row) {
    if (bad_records_ == options_.max_bad_records) {
      return absl::DataLossError(
          bad_records_ == 0
              ? absl::StrCat(row.message,
                             "; --max_bad_records leaves such records out")
              : absl::StrCat(row.message, "; ", bad_records_,
                             " bad records before it were skipped, as many as "
                             "allowed"));
    }
    ++bad_records_;
    lost_rests_ += row.ends_file;
    if (options_.on_bad_record) options_.on_bad_record(Printable(row.message));
    return absl::OkStatus();
  }

  absl::Status NoRecords() const {
    if (skipped_records_ > 0) {
      return absl::NotFoundError(
          absl::StrCat("no records in ", NameFiles(files_), " after the first ",
                       skipped_records_));
    }
    if (bad_records_ == 0) {
      return absl::NotFoundError(
          absl::StrCat("no records in ", NameFiles(files_)));
    }
    return absl::DataLossError(absl::StrCat("no readable records in ",
                                            NameFiles(files_), ": ",
                                            bad_records_, " bad ones"));
  }

  absl::StatusOr<Tensor> Join(const std::vector<Piece>& pieces, int64_t size,
                              int column) const {
    if (pieces.size() == 1 && pieces[0].count == pieces[0].chunk->rows) {
      return pieces[0].chunk->columns[column];
    }
    REQUANT_ASSIGN_OR_RETURN(Tensor joined,
                             AllocateRows(columns_[column], size));
    int64_t row = 0;
    for (const Piece& piece : pieces) {
      CopyRows(columns_[column], piece.chunk->columns[column], piece.begin,
               piece.count, &joined, row);
      row += piece.count;
    }
    return joined;
  }

  absl::Status FillTensors(const std::vector<Piece>& pieces,
                           Batch* batch) const {
    int column = 0;
    for (const InputSpec& input : spec_.input()) {
      std::vector<Tensor> features(input.feature_size());
      for (Tensor& feature : features) {
        REQUANT_ASSIGN_OR_RETURN(feature, Join(pieces, batch->size, column++));
      }
      Tensor tensor = features.front();
      if (features.size() > 1) {
        REQUANT_ASSIGN_OR_RETURN(
            tensor, SideBySide(features, columns_[column - 1], input.shape()));
      }
      if (input.feed_shape_size() > 0) {
        tensor = Reshape(tensor, input.feed_shape());
      }
      batch->inputs.push_back(std::move(tensor));
    }
    if (spec_.has_label()) {
      REQUANT_ASSIGN_OR_RETURN(batch->labels,
                               Join(pieces, batch->size, column));
    }
    return absl::OkStatus();
  }

  // Returns a tensor of [records, shape...] whose rows have a value of each of
  // `features`, which are [records].
  static absl::StatusOr<Tensor> SideBySide(const std::vector<Tensor>& features,
                                           Column column,
                                           absl::Span<const int64_t> shape) {
    const int64_t records = features.front().NumElements();
    column.elements = features.size();
    REQUANT_RETURN_IF_ERROR(
        tensorflow::TensorShape::BuildTensorShape(shape, &column.shape));
    REQUANT_ASSIGN_OR_RETURN(Tensor joined, AllocateRows(column, records));
    VisitType(column.dtype, [&](auto* type) {
      using Value = std::remove_pointer_t<decltype(type)>;
      for (size_t f = 0; f < features.size(); ++f) {
        const auto* from = static_cast<const Value*>(features[f].data());
        auto* to = static_cast<Value*>(joined.data()) + f;
        for (int64_t row = 0; row < records; ++row, to += features.size()) {
          *to = from[row];
        }
      }
    });
    return joined;
  }

  // Reshapes a tensor; CheckFeedShape has ensured that the shape fits.
  static Tensor Reshape(const Tensor& tensor,
                        absl::Span<const int64_t> feed_shape) {
    int64_t rest = tensor.NumElements();
    for (const int64_t size : feed_shape) {
      if (size > 0) rest /= size;
    }
    tensorflow::TensorShape shape;
    for (const int64_t size : feed_shape) {
      shape.AddDim(size > 0 ? size : rest);
    }
    Tensor reshaped;
    return reshaped.CopyFrom(tensor, shape) ? reshaped : tensor;
  }

  const DatasetSpec spec_;
  const BatchOptions options_;
  const std::vector<std::string> files_;
  const std::vector<Column> columns_;
  const int64_t total_bytes_;
  std::unique_ptr<ChunkPipeline> pipeline_;

  // The result of the last Assemble.
  absl::StatusOr<bool> result_ = true;
  std::shared_ptr<const Chunk> chunk_;
  // The next row of chunk_, and its number in all files.
  int64_t row_ = 0;
  int64_t record_ = 0;
  // The index of the first element of chunk_->bad that is not passed yet.
  size_t next_bad_ = 0;
  int64_t skipped_records_ = 0;
  int64_t good_records_ = 0;
  int64_t bad_records_ = 0;
  int64_t lost_rests_ = 0;
  // The records and bytes of the chunks up to chunk_.
  int64_t taken_records_ = 0;
  int64_t position_ = 0;
};

}  // namespace

std::string DescribeFiles(const DatasetSpec& spec) {
  return Printable(NameFiles(FilesOf(spec)));
}

absl::StatusOr<std::unique_ptr<BatchSource>> OpenBatchSource(
    const DatasetSpec& spec, const BatchOptions& options) {
  const SourceFormat* const format = FormatOf(spec);
  if (format == nullptr || format->open == nullptr) {
    return absl::InvalidArgumentError(
        "an in_graph source is read by its own graph");
  }
  REQUANT_ASSIGN_OR_RETURN(std::vector<Column> columns, ColumnsOf(spec));
  for (const std::string& file : FilesOf(spec)) {
    REQUANT_RETURN_IF_ERROR(CheckReadable(file));
  }
  REQUANT_ASSIGN_OR_RETURN(std::unique_ptr<ChunkSource> source,
                           format->open(spec, columns));
  for (Column& column : columns) {
    // The format gives classes instead of strings.
    if (column.vocabulary != nullptr) column.dtype = tensorflow::DT_INT64;
  }
  return std::make_unique<PipelinedBatchSource>(
      spec, options, std::move(columns), std::move(source));
}

absl::StatusOr<int64_t> CountRecords(const DatasetSpec& spec,
                                     const BatchOptions& options,
                                     const std::function<void()>& on_batch) {
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source,
                           OpenBatchSource(spec, options));
  int64_t records = 0;
  Batch batch;
  while (true) {
    REQUANT_ASSIGN_OR_RETURN(const bool more, source->Next(&batch));
    if (!more) return records;
    records += batch.size;
    if (on_batch != nullptr) on_batch();
  }
}

int64_t RecordsToCalibrateOn(int64_t records, int64_t most) {
  const int64_t held_back = records < 2 ? 0 : std::max<int64_t>(1, records / 5);
  const int64_t others = records - held_back;
  return most > 0 ? std::min(others, most) : others;
}

}  // namespace requant
