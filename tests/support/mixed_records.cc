#include "tests/support/mixed_records.h"

#include <zlib.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"

// This file is compiled with -ffp-contract=off because a fused multiply-add
// rounds differently.

namespace requant {
namespace {

// A multiple of the number of classes, so that all are equally frequent.
constexpr int kStates = 2 * kMixedClasses;

// How far readings deviate from their state's mean: far enough that a good
// model is right nine times in ten.
constexpr double kSignalNoise = 1.5;
constexpr double kContextNoise = 1.0;

// Distinguishes the uses of one hash function.
enum Purpose : uint64_t {
  kSplit = 1,
  kState,
  kSignalCenter,
  kContextCenter,
  kSignalScale,
  kContextScale,
  kSignalReading,
  kContextReading,
};

// Returns the result of SplitMix64's finalizer.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t Hash(uint64_t purpose, uint64_t a, uint64_t b = 0) {
  return Mix(Mix(Mix(purpose) ^ a) ^ b);
}

// Returns a number in [0, 1).
double Uniform(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// Returns a nearly normal number, of variance 1, from four 16-bit uniforms.
double Bell(uint64_t bits) {
  const uint64_t sum = (bits & 0xffff) + ((bits >> 16) & 0xffff) +
                       ((bits >> 32) & 0xffff) + (bits >> 48);
  constexpr double kSqrt3 = 1.7320508075688772;
  return (static_cast<double>(sum) * 0x1p-16 - 2.0) * kSqrt3;
}

// Returns a factor between 1/2 and 2.
double Scale(uint64_t purpose, int column) {
  return 0.5 + 1.5 * Uniform(Hash(purpose, column));
}

// Returns the label. Given only one state, all labels are equally likely.
int Label(int signal_state, int context_state) {
  return (signal_state + 2 * context_state) % kMixedClasses;
}

float Signal(int state, int column, uint64_t row) {
  const double reading = Bell(Hash(kSignalCenter, state, column)) +
                         kSignalNoise * Bell(Hash(kSignalReading, row, column));
  return static_cast<float>(reading * Scale(kSignalScale, column));
}

// Returns a reading, shifted so that the range is far from symmetric.
float Context(int state, int column, uint64_t row) {
  const double reading =
      1.0 + 1.5 * Bell(Hash(kContextCenter, state, column)) +
      kContextNoise * Bell(Hash(kContextReading, row, column));
  return static_cast<float>(reading * Scale(kContextScale, column));
}

template <typename T>
std::string Bytes(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Returns a .npy file of format version 1; `columns` is 0 for one dimension.
template <typename T>
std::string Npy(const std::string& type, const std::vector<T>& values, int rows,
                int columns) {
  const std::string shape = columns == 0
                                ? absl::StrCat("(", rows, ",)")
                                : absl::StrCat("(", rows, ", ", columns, ")");
  const std::string header =
      absl::StrCat("{'descr': '", type,
                   "', 'fortran_order': False, 'shape': ", shape, ", }\n");
  return absl::StrCat("\x93NUMPY", std::string("\x01\0", 2),
                      Bytes<uint16_t>(header.size()), header,
                      std::string(reinterpret_cast<const char*>(values.data()),
                                  values.size() * sizeof(T)));
}

// Returns a zip archive that stores the files as they are.
std::string Zip(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string archive;
  std::string directory;
  for (const auto& [name, content] : files) {
    const uint32_t checksum = crc32(
        0, reinterpret_cast<const Bytef*>(content.data()), content.size());
    const std::string common = absl::StrCat(
        std::string(8, '\0'), Bytes(checksum), Bytes<uint32_t>(content.size()),
        Bytes<uint32_t>(content.size()), Bytes<uint16_t>(name.size()),
        Bytes<uint16_t>(0));
    absl::StrAppend(&directory, "PK\x01\x02", Bytes<uint16_t>(20),
                    Bytes<uint16_t>(20), common, std::string(10, '\0'),
                    Bytes<uint32_t>(archive.size()), name);
    absl::StrAppend(&archive, "PK\x03\x04", Bytes<uint16_t>(20), common, name,
                    content);
  }
  return absl::StrCat(archive, directory, "PK\x05\x06", std::string(4, '\0'),
                      Bytes<uint16_t>(files.size()),
                      Bytes<uint16_t>(files.size()),
                      Bytes<uint32_t>(directory.size()),
                      Bytes<uint32_t>(archive.size()), Bytes<uint16_t>(0));
}

}  // namespace

MixedRecords DrawMixedRecords(MixedSplit split, int rows) {
  MixedRecords records;
  const uint64_t stream = Hash(kSplit, static_cast<uint64_t>(split));
  for (int i = 0; i < rows; ++i) {
    const uint64_t row = Hash(stream, i);
    const int signal_state = Hash(kState, row, 0) % kStates;
    const int context_state = Hash(kState, row, 1) % kStates;
    for (int j = 0; j < kMixedSignals; ++j) {
      records.signal.push_back(Signal(signal_state, j, row));
    }
    for (int j = 0; j < kMixedContexts; ++j) {
      records.context.push_back(Context(context_state, j, row));
    }
    records.label.push_back(Label(signal_state, context_state));
  }
  return records;
}

absl::Status WriteMixedRecords(const std::string& path, MixedSplit split,
                               int rows) {
  const MixedRecords records = DrawMixedRecords(split, rows);
  return WriteFileAtomically(
      path,
      Zip({{"signal.npy", Npy("<f4", records.signal, rows, kMixedSignals)},
           {"context.npy", Npy("<f4", records.context, rows, kMixedContexts)},
           {"label.npy", Npy("<i8", records.label, rows, 0)}}));
}

}  // namespace requant
