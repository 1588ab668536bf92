#include "runtime/evaluation/predictions.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/crc/crc32c.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"

namespace requant {
namespace {

// Numbers are little-endian, like those of the machines that this runs on.
constexpr std::string_view kMagic = "RQPRED1\n";

struct Trailer {
  int64_t records = 0;
  // The CRC-32C of everything before it.
  uint64_t checksum = 0;
};

constexpr size_t kStartBytes = kMagic.size() + sizeof(PredictionsHeader);
constexpr size_t kLeastBytes = kStartBytes + sizeof(Trailer);

// No prediction has more values, and this keeps sizes from overflowing.
constexpr int64_t kMostPerRecord = 1 << 28;

size_t RecordBytes(const PredictionsHeader& header) {
  return sizeof(float) * header.values_per_record +
         sizeof(double) * header.labels_per_record;
}

template <typename Value>
void AppendRaw(const Value* values, size_t count, std::string* out) {
  out->append(reinterpret_cast<const char*>(values), count * sizeof(Value));
}

template <typename Value>
Value RawAt(std::string_view bytes, size_t position) {
  Value value;
  std::memcpy(&value, bytes.data() + position, sizeof(Value));
  return value;
}

uint32_t Checksum(std::string_view bytes) {
  return static_cast<uint32_t>(absl::ComputeCrc32c(bytes));
}

absl::Status Damaged(const std::string& name, std::string_view what) {
  return absl::DataLossError(
      absl::StrCat(name, " is no whole file of predictions: ", what,
                   "; make it again with --predictions_out"));
}

absl::Status CheckHeader(const PredictionsHeader& header,
                         const std::string& name) {
  if (header.kind <= PredictionSpec::KIND_AUTO ||
      header.kind > PredictionSpec::Kind_MAX ||
      !PredictionSpec::Kind_IsValid(static_cast<int>(header.kind))) {
    return Damaged(name, absl::StrCat("its predictions are of an unknown kind ",
                                      header.kind));
  }
  if (header.values_per_record < 1 ||
      header.values_per_record > kMostPerRecord ||
      header.labels_per_record < 0 ||
      header.labels_per_record > kMostPerRecord) {
    return Damaged(name, absl::StrCat("it claims ", header.values_per_record,
                                      " values and ", header.labels_per_record,
                                      " labels per record"));
  }
  return absl::OkStatus();
}

bool IsSameLabel(double label, double other) {
  return label == other || (std::isnan(label) && std::isnan(other));
}

}  // namespace

PredictionsEncoder::PredictionsEncoder(const PredictionsHeader& header)
    : header_(header), bytes_(kMagic) {
  AppendRaw(&header, 1, &bytes_);
}

void PredictionsEncoder::Add(absl::Span<const float> values,
                             absl::Span<const double> labels) {
  const int64_t per_record = header_.values_per_record;
  const int64_t labels_per_record = header_.labels_per_record;
  const int64_t records = static_cast<int64_t>(values.size()) / per_record;
  bytes_.reserve(bytes_.size() + records * RecordBytes(header_));
  for (int64_t record = 0; record < records; ++record) {
    AppendRaw(labels.data() + record * labels_per_record, labels_per_record,
              &bytes_);
    AppendRaw(values.data() + record * per_record, per_record, &bytes_);
  }
  records_ += records;
}

std::string PredictionsEncoder::Finish() {
  const Trailer trailer = {records_, Checksum(bytes_)};
  AppendRaw(&trailer, 1, &bytes_);
  return std::move(bytes_);
}

absl::StatusOr<StoredBaseline> StoredBaseline::Parse(std::string content,
                                                     const std::string& name) {
  if (!absl::StartsWith(content, kMagic)) {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        " is no file of predictions; requant evaluate writes one with "
        "--predictions_out"));
  }
  if (content.size() < kLeastBytes) return Damaged(name, "it was cut");
  StoredBaseline baseline;
  baseline.name_ = name;
  baseline.header_ = RawAt<PredictionsHeader>(content, kMagic.size());
  REQUANT_RETURN_IF_ERROR(CheckHeader(baseline.header_, name));
  const size_t end = content.size() - sizeof(Trailer);
  const Trailer trailer = RawAt<Trailer>(content, end);
  const size_t record_bytes = RecordBytes(baseline.header_);
  if (trailer.records < 0 || (end - kStartBytes) % record_bytes != 0 ||
      static_cast<uint64_t>(trailer.records) !=
          (end - kStartBytes) / record_bytes) {
    return Damaged(name, "its length is not that of its records");
  }
  if (Checksum(std::string_view(content).substr(0, end)) != trailer.checksum) {
    return Damaged(name, "its checksum is not that of its content");
  }
  baseline.records_ = trailer.records;
  baseline.content_ = std::move(content);
  return baseline;
}

absl::StatusOr<StoredBaseline> StoredBaseline::Read(const std::string& path) {
  REQUANT_RETURN_IF_ERROR(CheckRegular(path));
  REQUANT_ASSIGN_OR_RETURN(std::string content, ReadFile(path));
  return Parse(std::move(content), path);
}

void StoredBaseline::Get(int64_t count) {
  const size_t value_bytes = sizeof(float) * header_.values_per_record;
  const size_t label_bytes = sizeof(double) * header_.labels_per_record;
  values_.resize(count * header_.values_per_record);
  labels_.resize(count * header_.labels_per_record);
  const char* from =
      content_.data() + kStartBytes + taken_ * RecordBytes(header_);
  char* to_labels = reinterpret_cast<char*>(labels_.data());
  char* to_values = reinterpret_cast<char*>(values_.data());
  for (int64_t record = 0; record < count; ++record) {
    to_labels = std::copy_n(from, label_bytes, to_labels);
    to_values = std::copy_n(from + label_bytes, value_bytes, to_values);
    from += label_bytes + value_bytes;
  }
  taken_ += count;
}

absl::StatusOr<int64_t> StoredBaseline::Take(const PredictionFormat& format,
                                             int64_t first_record,
                                             int64_t records,
                                             absl::Span<const double> labels) {
  const int64_t count = std::min(records, records_ - taken_);
  if (count <= 0) return 0;
  const int64_t labels_per_record =
      static_cast<int64_t>(labels.size()) / records;
  REQUANT_RETURN_IF_ERROR(CheckFormat(format, labels_per_record));
  Get(count);
  const auto [stored, given] = std::mismatch(labels_.begin(), labels_.end(),
                                             labels.begin(), IsSameLabel);
  if (stored != labels_.end()) {
    const int64_t record =
        first_record + (stored - labels_.begin()) / labels_per_record;
    return absl::FailedPreconditionError(absl::StrCat(
        "the predictions in ", name_,
        " are of other data: the records differ from record ", record,
        " (counted from 0) on, whose label is ", *given, " and was ", *stored));
  }
  if (labels_.empty()) return count;
  if (!metrics_.has_value()) metrics_.emplace(format);
  REQUANT_RETURN_IF_ERROR(metrics_->Add(first_record, values_, labels_));
  return count;
}

absl::Status StoredBaseline::CheckFormat(const PredictionFormat& format,
                                         int64_t labels_per_record) const {
  if (header_.kind != format.kind) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the predictions in ", name_, " are ",
        PredictionSpec::Kind_Name(kind()), ", those of the graph ",
        PredictionSpec::Kind_Name(format.kind),
        ": declare what they are by prediction { kind: ... } in the dataset"));
  }
  if (header_.values_per_record != format.values_per_record) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the predictions in ", name_, " have ", header_.values_per_record,
        " values per record, those of the graph ", format.values_per_record,
        ": they cannot be compared"));
  }
  if (header_.labels_per_record != labels_per_record) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the predictions in ", name_, " are of data with ",
        header_.labels_per_record, " labels per record, where these have ",
        labels_per_record, ": they are other records"));
  }
  return absl::OkStatus();
}

std::optional<Scores> StoredBaseline::Result() const {
  if (!metrics_.has_value()) return std::nullopt;
  return metrics_->Result();
}

}  // namespace requant
