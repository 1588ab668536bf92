#ifndef REQUANT_BASE_RECORDS_RECORD_FORMAT_H_
#define REQUANT_BASE_RECORDS_RECORD_FORMAT_H_

// A record of a TFRecord file consists of its length (8 bytes), the checksum of
// these (4), the data, and the data's checksum (4), all little-endian.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "absl/crc/crc32c.h"

namespace requant {

inline constexpr size_t kRecordHeaderBytes = 12;
inline constexpr size_t kRecordFooterBytes = 4;

// Returns the masked checksum of `bytes`, because a plain CRC of data that
// itself contains CRCs is weak.
inline uint32_t MaskedChecksum(std::string_view bytes) {
  const uint32_t crc = static_cast<uint32_t>(absl::ComputeCrc32c(bytes));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// Returns whether the first four bytes of `stored` are the checksum of `data`.
inline bool ChecksumIs(std::string_view data, const char* stored) {
  uint32_t checksum = 0;
  std::memcpy(&checksum, stored, sizeof(checksum));
  return checksum == MaskedChecksum(data);
}

// Returns the length in a record's header, or nullopt if its checksum is wrong
// or `header` is too short.
inline std::optional<uint64_t> RecordLength(std::string_view header) {
  if (header.size() < kRecordHeaderBytes) return std::nullopt;
  uint64_t length = 0;
  std::memcpy(&length, header.data(), sizeof(length));
  if (!ChecksumIs(header.substr(0, sizeof(length)),
                  header.data() + sizeof(length))) {
    return std::nullopt;
  }
  return length;
}

// Appends `data` as a record.
inline void AppendRecord(std::string_view data, std::string* file) {
  const auto append = [file](const auto& number) {
    file->append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  const uint64_t length = data.size();
  append(length);
  append(MaskedChecksum(std::string_view(reinterpret_cast<const char*>(&length),
                                         sizeof(length))));
  file->append(data);
  append(MaskedChecksum(data));
}

}  // namespace requant

#endif  // REQUANT_BASE_RECORDS_RECORD_FORMAT_H_
