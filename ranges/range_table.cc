#include "ranges/range_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/crc/crc32c.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "ranges/range_table.pb.h"

namespace requant {
namespace {

constexpr char kFormat[] = "requant.RangeTable";
// Tables without calibration data are still written as version 1.
constexpr int kLogVersion = 1;
constexpr int kVersion = 2;
// With this limit, sums of thousands of counts do not overflow.
constexpr int64_t kMaxCount = int64_t{1} << 52;
// The size limit of a protobuf message.
constexpr size_t kMaxBytes = std::numeric_limits<int>::max();
// The field "checksum" at the end of a file consists of a tag and a value.
constexpr size_t kChecksumBytes = 5;

uint32_t ChecksumOf(std::string_view contents) {
  return static_cast<uint32_t>(absl::ComputeCrc32c(contents));
}

void Append(const std::vector<float>& from, std::vector<float>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

void FaultToProto(const RangeFault& fault, RangeFaultProto* proto) {
  proto->set_count(fault.count);
  proto->set_first_place(fault.first_place);
}

void HistogramToProto(const ValueHistogram& histogram,
                      ValueHistogramProto* proto) {
  proto->set_zeros(histogram.zeros());
  proto->set_exponent(histogram.exponent());
  proto->set_first_bucket(histogram.first_bucket());
  proto->mutable_counts()->Add(histogram.counts().begin(),
                               histogram.counts().end());
}

absl::StatusOr<ValueHistogram> HistogramFromProto(
    const ValueHistogramProto& proto) {
  return ValueHistogram::Restore(
      proto.zeros(), proto.exponent(), proto.first_bucket(),
      std::vector<int64_t>(proto.counts().begin(), proto.counts().end()));
}

void MomentsToProto(const ChannelMoments& moments, ChannelMomentsProto* proto) {
  proto->set_rows(moments.rows());
  proto->mutable_mean()->Add(moments.mean().begin(), moments.mean().end());
  proto->mutable_triangle()->Add(moments.triangle().begin(),
                                 moments.triangle().end());
}

absl::StatusOr<ChannelMoments> MomentsFromProto(
    const ChannelMomentsProto& proto) {
  return ChannelMoments::Restore(
      proto.rows(),
      std::vector<double>(proto.mean().begin(), proto.mean().end()),
      std::vector<float>(proto.triangle().begin(), proto.triangle().end()));
}

void EntryToProto(const RangeKey& key, const RangeEntry& entry,
                  RangeEntryProto* proto) {
  proto->set_node(key.first);
  proto->set_output(key.second);
  proto->set_count(entry.count);
  proto->mutable_mins()->Add(entry.mins.begin(), entry.mins.end());
  proto->mutable_maxs()->Add(entry.maxs.begin(), entry.maxs.end());
  if (entry.not_finite.count > 0) {
    FaultToProto(entry.not_finite, proto->mutable_not_finite());
  }
  if (entry.inverted.count > 0) {
    FaultToProto(entry.inverted, proto->mutable_inverted());
  }
  proto->set_records(entry.records);
  if (entry.histogram.has_value()) {
    HistogramToProto(*entry.histogram, proto->mutable_histogram());
  }
  proto->mutable_channel_mins()->Add(entry.channel_mins.begin(),
                                     entry.channel_mins.end());
  proto->mutable_channel_maxs()->Add(entry.channel_maxs.begin(),
                                     entry.channel_maxs.end());
  if (entry.moments.has_value()) {
    MomentsToProto(*entry.moments, proto->mutable_moments());
  }
}

// Omits the histogram and the moments, which may be damaged.
RangeEntry EntryFromProto(const RangeEntryProto& proto) {
  RangeEntry entry;
  entry.count = proto.count();
  entry.mins.assign(proto.mins().begin(), proto.mins().end());
  entry.maxs.assign(proto.maxs().begin(), proto.maxs().end());
  entry.not_finite = {proto.not_finite().count(),
                      proto.not_finite().first_place()};
  entry.inverted = {proto.inverted().count(), proto.inverted().first_place()};
  entry.records = proto.records();
  entry.channel_mins.assign(proto.channel_mins().begin(),
                            proto.channel_mins().end());
  entry.channel_maxs.assign(proto.channel_maxs().begin(),
                            proto.channel_maxs().end());
  return entry;
}

bool AllFinite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

bool IsCount(int64_t count) { return count >= 0 && count <= kMaxCount; }

// Returns whether these can be the range of a channel of an entry.
bool IsRange(float min, float max) {
  return std::isfinite(min) && std::isfinite(max) && min <= max;
}

// Returns what is wrong with an entry that was read, or "".
std::string EntryProblem(const RangeKey& key, const RangeEntry& entry) {
  const size_t values = std::max(entry.mins.size(), entry.maxs.size());
  if (key.first.empty()) return "an entry without a node";
  if (key.second < 0) return "a negative output number";
  if (!AllFinite(entry.mins) || !AllFinite(entry.maxs)) {
    return "a value that is not finite";
  }
  if (!IsCount(entry.count) || !IsCount(entry.not_finite.count) ||
      !IsCount(entry.inverted.count) || !IsCount(entry.records) ||
      entry.inverted.count > entry.count ||
      values > static_cast<size_t>(entry.count)) {
    return "counts that do not fit its values";
  }
  if (entry.channel_mins.size() != entry.channel_maxs.size() ||
      entry.channel_mins.size() > kMostChannels ||
      !std::equal(entry.channel_mins.begin(), entry.channel_mins.end(),
                  entry.channel_maxs.begin(), IsRange)) {
    return "channels without a range";
  }
  return "";
}

// Returns whether an entry has data that logs do not contain.
bool IsOfCalibration(const RangeEntry& entry) {
  return entry.records > 0 || entry.histogram.has_value() ||
         !entry.channel_mins.empty() || entry.moments.has_value();
}

int VersionOf(const RangeTable& table) {
  const auto& entries = table.entries();
  const bool calibrated = std::any_of(
      entries.begin(), entries.end(),
      [](const auto& item) { return IsOfCalibration(item.second); });
  return calibrated || !table.made_from().empty() ? kVersion : kLogVersion;
}

absl::StatusOr<RangeTable> TableFromProto(const RangeTableProto& proto,
                                          const std::string& file) {
  if (proto.version() > kVersion) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, " is a RangeTable of version ", proto.version(),
        ", and this program reads versions up to ", kVersion,
        ": parse the log or calibrate again, or use a newer requant"));
  }
  RangeTable table;
  for (const RangeEntryProto& entry_proto : proto.entries()) {
    const RangeKey key(entry_proto.node(), entry_proto.output());
    RangeEntry entry = EntryFromProto(entry_proto);
    std::string problem = EntryProblem(key, entry);
    if (problem.empty() && table.Find(key.first, key.second) != nullptr) {
      problem = "the same output twice";
    }
    const auto restore = [&](auto restored, auto* part, const char* damage) {
      if (restored.ok()) {
        *part = *std::move(restored);
      } else if (problem.empty()) {
        problem = damage;
      }
    };
    if (entry_proto.has_histogram()) {
      restore(HistogramFromProto(entry_proto.histogram()), &entry.histogram,
              "a histogram that is none");
    }
    if (entry_proto.has_moments()) {
      restore(MomentsFromProto(entry_proto.moments()), &entry.moments,
              "moments that are none");
    }
    if (!problem.empty()) {
      return absl::DataLossError(
          absl::StrCat(file, " is damaged: it has ", problem, " (node \"",
                       key.first, "\"); parse the log or calibrate again"));
    }
    table.FindOrAdd(key.first, key.second) = std::move(entry);
  }
  table.set_made_from(proto.calibration().made_from());
  return table;
}

// Widens each channel's range to the other's. Drops all if their numbers
// differ.
void MergeChannels(const RangeEntry& other, RangeEntry* entry) {
  if (other.channel_mins.size() != entry->channel_mins.size()) {
    entry->channel_mins.clear();
    entry->channel_maxs.clear();
  }
  for (size_t i = 0; i < entry->channel_mins.size(); ++i) {
    float& min = entry->channel_mins[i];
    float& max = entry->channel_maxs[i];
    min = std::min(min, other.channel_mins[i]);
    max = std::max(max, other.channel_maxs[i]);
  }
}

void MergeMoments(const RangeEntry& other, RangeEntry* entry) {
  if (entry->moments.has_value() && other.moments.has_value() &&
      entry->moments->channels() == other.moments->channels()) {
    entry->moments->Merge(*other.moments);
  } else {
    entry->moments.reset();
  }
}

// Returns the k-th smallest value, where k is `index` clamped to valid ones.
float Select(std::vector<float> values, float index) {
  if (values.empty()) return std::numeric_limits<float>::quiet_NaN();
  const float last = static_cast<float>(values.size() - 1);
  const size_t k =
      std::min(values.size() - 1,
               static_cast<size_t>(std::min(std::max(index, 0.0f), last)));
  std::nth_element(values.begin(), values.begin() + k, values.end());
  return values[k];
}

}  // namespace

void RangeFault::Add(const Place& place) {
  if (count++ == 0) first_place = absl::StrCat(place.file, ":", place.line);
}

void RangeFault::Add(int64_t added, const std::string& place) {
  if (count == 0 && added > 0) first_place = place;
  count += added;
}

void RangeFault::Merge(const RangeFault& other) {
  if (count == 0) first_place = other.first_place;
  count += other.count;
}

void RangeEntry::AddMin(float min, const Place& place) {
  ++count;
  AddValue(min, place, &mins);
}

void RangeEntry::AddMax(float max, const Place& place) {
  ++count;
  AddValue(max, place, &maxs);
}

void RangeEntry::AddRange(float min, float max, const Place& place) {
  ++count;
  AddValue(min, place, &mins);
  AddValue(max, place, &maxs);
  if (min > max) inverted.Add(place);
}

void RangeEntry::AddValue(float value, const Place& place,
                          std::vector<float>* values) {
  if (std::isfinite(value)) {
    values->push_back(value);
  } else {
    not_finite.Add(place);
  }
}

void RangeEntry::Merge(const RangeEntry& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  const bool both_know = records > 0 && other.records > 0;
  records = both_know ? records + other.records : 0;
  if (histogram.has_value() && other.histogram.has_value()) {
    histogram->Merge(*other.histogram);
  } else {
    histogram.reset();
  }
  MergeChannels(other, this);
  MergeMoments(other, this);
  count += other.count;
  Append(other.mins, &mins);
  Append(other.maxs, &maxs);
  not_finite.Merge(other.not_finite);
  inverted.Merge(other.inverted);
}

const RangeEntry* RangeTable::Find(std::string_view node, int output) const {
  const auto found = entries_.find(RangeKey(node, output));
  return found == entries_.end() ? nullptr : &found->second;
}

RangeEntry& RangeTable::FindOrAdd(std::string_view node, int output) {
  return entries_[RangeKey(node, output)];
}

void RangeTable::Merge(const RangeTable& other) {
  if (&other == this) return Merge(RangeTable(other));
  for (const auto& [key, entry] : other.entries()) {
    FindOrAdd(key.first, key.second).Merge(entry);
  }
  made_from_.clear();
}

absl::StatusOr<std::string> SerializeRangeTable(const RangeTable& table) {
  RangeTableProto proto;
  proto.set_format(kFormat);
  proto.set_version(VersionOf(table));
  proto.set_entry_count(table.entries().size());
  for (const auto& [key, entry] : table.entries()) {
    EntryToProto(key, entry, proto.add_entries());
  }
  if (proto.version() > kLogVersion) {
    proto.mutable_calibration()->set_made_from(table.made_from());
  }
  if (proto.ByteSizeLong() + kChecksumBytes > kMaxBytes) {
    return absl::ResourceExhaustedError(
        "a RangeTable file holds at most 2 GB (500 million values): observe "
        "fewer batches or nodes, or keep no moments (requant calibrate "
        "--moment_records=0)");
  }
  std::string contents = proto.SerializeAsString();
  RangeTableProto end;
  end.set_checksum(ChecksumOf(contents));
  return contents + end.SerializeAsString();
}

absl::StatusOr<RangeTable> ParseRangeTable(std::string_view contents,
                                           const std::string& file) {
  if (!StartsLikeRangeTable(contents)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file,
                     " is not a RangeTable file: expected one that requant "
                     "parse_log --output or requant calibrate wrote"));
  }
  RangeTableProto proto;
  if (!proto.ParseFromString(contents) || proto.format() != kFormat) {
    return absl::DataLossError(
        absl::StrCat(file,
                     " is damaged: it does not decode as a RangeTable; parse "
                     "the log or calibrate again"));
  }
  REQUANT_ASSIGN_OR_RETURN(RangeTable table, TableFromProto(proto, file));
  if (!proto.has_checksum() ||
      proto.checksum() !=
          ChecksumOf(contents.substr(0, contents.size() - kChecksumBytes))) {
    return absl::DataLossError(absl::StrCat(
        file,
        proto.has_checksum()
            ? " is damaged: its checksum is not that of its content"
            : " lacks its checksum: an older Requant wrote it, or it is cut",
        "; parse the log or calibrate again"));
  }
  return table;
}

absl::Status WriteRangeTable(const RangeTable& table, const std::string& path) {
  const absl::StatusOr<std::string> contents = SerializeRangeTable(table);
  if (!contents.ok()) {
    return absl::Status(
        contents.status().code(),
        absl::StrCat("cannot write ", path, ": ", contents.status().message()));
  }
  return WriteFileAtomically(path, *contents);
}

absl::StatusOr<RangeTable> ReadRangeTable(const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(const std::string contents,
                           ReadFile(path, kMaxBytes));
  return ParseRangeTable(contents, path);
}

absl::StatusOr<RangeTable> ReadRangeTables(
    const std::vector<std::string>& paths) {
  RangeTable table;
  for (const std::string& path : paths) {
    REQUANT_ASSIGN_OR_RETURN(const RangeTable part, ReadRangeTable(path));
    table.Merge(part);
  }
  return table;
}

bool StartsLikeRangeTable(std::string_view head) {
  // This is field 1 of the message: its tag, length and text.
  const std::string start =
      absl::StrCat("\n", std::string(1, sizeof(kFormat) - 1), kFormat);
  return absl::StartsWith(head, start);
}

float LowerPercentile(std::vector<float> values, float percentile) {
  const float index = std::round(values.size() * (percentile / 100.0f));
  return Select(std::move(values), index);
}

float UpperPercentile(std::vector<float> values, float percentile) {
  const float index =
      std::round(values.size() * (1.0f - (percentile / 100.0f)));
  return Select(std::move(values), index);
}

}  // namespace requant
