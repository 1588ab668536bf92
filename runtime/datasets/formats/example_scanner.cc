#include "runtime/datasets/formats/example_scanner.h"

#include <cstring>

namespace requant {
namespace {

using tensorflow::tstring;

// Tags (field number and wire type) of Example, Features, Feature and the
// lists.
constexpr char kFeaturesTag = 0x0a;
constexpr char kEntryTag = 0x0a;
constexpr char kKeyTag = 0x0a;
constexpr char kValueTag = 0x12;
constexpr char kBytesListTag = 0x0a;
constexpr char kFloatListTag = 0x12;
constexpr char kInt64ListTag = 0x1a;
constexpr char kListValueTag = 0x0a;

// Takes a length-delimited field off the front of `bytes`; false unless it is
// there with this tag.
inline bool TakeField(char tag, std::string_view* bytes,
                      std::string_view* field) {
  constexpr size_t kMaxLengthBytes = 4;
  if (bytes->size() < 2 || (*bytes)[0] != tag) return false;
  size_t length = 0;
  size_t i = 1;
  for (int shift = 0;; shift += 7, ++i) {
    if (i == bytes->size() || i > kMaxLengthBytes) return false;
    const unsigned char byte = (*bytes)[i];
    length |= size_t{byte & 0x7fu} << shift;
    if (byte < 0x80) break;
  }
  ++i;
  if (length > bytes->size() - i) return false;
  *field = bytes->substr(i, length);
  bytes->remove_prefix(i + length);
  return true;
}

// The same when it is all there is.
inline bool OnlyField(char tag, std::string_view bytes,
                      std::string_view* field) {
  return TakeField(tag, &bytes, field) && bytes.empty();
}

// The rest of a number whose first byte is in `value`; null when it is longer
// than numbers are.
const char* DecodeLongVarint(const char* at, const char* end, uint64_t* value) {
  *value &= 0x7f;
  for (int shift = 7; shift < 64; shift += 7) {
    if (at == end) return nullptr;
    const uint64_t byte = static_cast<unsigned char>(*at++);
    // The tenth byte has the 64th bit.
    if (shift == 63 && byte > 1) return nullptr;
    *value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return at;
  }
  return nullptr;
}

bool DecodeVarints(std::string_view packed, int64_t count, int64_t* values) {
  const char* at = packed.data();
  const char* const end = at + packed.size();
  for (int64_t i = 0; i < count; ++i) {
    if (at == end) return false;
    uint64_t value = static_cast<unsigned char>(*at++);
    if (value >= 0x80) {
      if (at != end && static_cast<unsigned char>(*at) < 0x80) {
        value = (value & 0x7f) | uint64_t{static_cast<unsigned char>(*at++)}
                                     << 7;
      } else {
        at = DecodeLongVarint(at, end, &value);
        if (at == nullptr) return false;
      }
    }
    values[i] = static_cast<int64_t>(value);
  }
  return at == end;
}

bool ScanStrings(std::string_view list, int64_t count, tstring* values) {
  for (int64_t i = 0; i < count; ++i) {
    std::string_view value;
    if (!TakeField(kListValueTag, &list, &value)) return false;
    values[i].assign(value.data(), value.size());
  }
  return list.empty();
}

// `feature` is a serialized Feature.
bool ScanValues(std::string_view feature, const Column& column, void* values) {
  std::string_view list, packed;
  switch (column.dtype) {
    case tensorflow::DT_FLOAT:
      if (!OnlyField(kFloatListTag, feature, &list) ||
          !OnlyField(kListValueTag, list, &packed) ||
          packed.size() != column.elements * sizeof(float)) {
        return false;
      }
      std::memcpy(values, packed.data(), packed.size());
      return true;
    case tensorflow::DT_INT64:
      return OnlyField(kInt64ListTag, feature, &list) &&
             OnlyField(kListValueTag, list, &packed) &&
             DecodeVarints(packed, column.elements,
                           static_cast<int64_t*>(values));
    default:
      return OnlyField(kBytesListTag, feature, &list) &&
             ScanStrings(list, column.elements, static_cast<tstring*>(values));
  }
}

}  // namespace

ExampleScanner::ExampleScanner(absl::Span<const Column> features,
                               absl::Span<tensorflow::Tensor> rows)
    : slots_(features.size()) {
  for (size_t i = 0; i < features.size(); ++i) {
    slots_[i].column = &features[i];
    slots_[i].rows = &rows[i];
    slots_by_name_.emplace(features[i].feature, &slots_[i]);
  }
}

ExampleScanner::Slot* ExampleScanner::FindSlot(size_t position,
                                               std::string_view name) {
  if (position < entries_.size() && entries_[position].name == name) {
    return entries_[position].slot;
  }
  if (position >= entries_.size()) entries_.resize(position + 1);
  const auto found = slots_by_name_.find(name);
  entries_[position] = {
      name, found == slots_by_name_.end() ? nullptr : found->second};
  return entries_[position].slot;
}

bool ExampleScanner::ScanFeature(std::string_view entry, size_t position,
                                 int64_t row) {
  std::string_view name, feature;
  if (!TakeField(kKeyTag, &entry, &name) ||
      !OnlyField(kValueTag, entry, &feature)) {
    return false;
  }
  Slot* const slot = FindSlot(position, name);
  if (slot == nullptr) return true;
  if (slot->last_row == row) return false;
  slot->last_row = row;
  return ScanValues(feature, *slot->column,
                    RowAddress(*slot->rows, *slot->column, row));
}

bool ExampleScanner::FillMissing(int64_t row) {
  for (const Slot& slot : slots_) {
    if (slot.last_row == row) continue;
    if (!slot.column->default_value.has_value()) return false;
    FillDefault(*slot.column, row, slot.rows);
  }
  return true;
}

bool ExampleScanner::Scan(std::string_view example, int64_t row) {
  std::string_view features, entry;
  if (!OnlyField(kFeaturesTag, example, &features)) return false;
  for (size_t position = 0; !features.empty(); ++position) {
    if (!TakeField(kEntryTag, &features, &entry) ||
        !ScanFeature(entry, position, row)) {
      return false;
    }
  }
  return FillMissing(row);
}

}  // namespace requant
