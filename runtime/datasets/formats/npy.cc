#include "runtime/datasets/formats/npy.h"

#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "re2/re2.h"
#include "runtime/datasets/formats/column.h"
#include "tensorflow/core/framework/bfloat16.h"
#include "tensorflow/core/framework/numeric_types.h"
#include "tensorflow/core/platform/tstring.h"

namespace requant {
namespace {

using Eigen::half;
using tensorflow::bfloat16;
using tensorflow::DataType;
using tensorflow::tstring;

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicBytes = 6;
// By default, NumPy itself reads at most 10,000.
constexpr uint32_t kMaxHeaderBytes = 1 << 20;
constexpr int64_t kMaxItemBytes = 1 << 20;
constexpr size_t kMaxDimensions = 64;

bool IsSupported(char kind, int64_t size) {
  switch (kind) {
    case 'f':
      return size == 2 || size == 4 || size == 8;
    case 'i':
    case 'u':
      return size == 1 || size == 2 || size == 4 || size == 8;
    case 'b':
      return size == 1;
    case 'S':
    case 'U':
      return size >= 1;
    default:
      return false;
  }
}

absl::Status BadType(std::string_view descr, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("its elements are of type '",
                   absl::CHexEscape(descr.substr(0, 40)), "', ", why));
}

// Parses '<f4': byte order, kind and size.
absl::Status ParseType(std::string_view descr, NpyHeader* header) {
  constexpr char kReadable[] =
      "which cannot be read; float, integer, bool, bytes and text arrays can";
  if (descr.size() < 3) return BadType(descr, kReadable);
  header->kind = descr[1];
  int64_t size = 0;
  if (!absl::SimpleAtoi(descr.substr(2), &size) || size > kMaxItemBytes ||
      !IsSupported(header->kind, size)) {
    return BadType(descr, kReadable);
  }
  header->item_bytes = header->kind == 'U' ? size * 4 : size;
  const bool has_order =
      header->kind == 'U' || (header->kind != 'S' && header->item_bytes > 1);
  if (descr[0] == '>' && has_order) {
    return BadType(descr,
                   "which is big-endian; save it as little-endian, such as "
                   "x.astype(x.dtype.newbyteorder('<'))");
  }
  if (!absl::StrContains("<|=>", descr[0])) return BadType(descr, kReadable);
  return absl::OkStatus();
}

// Reads (), (3,) or (3, 4) without the brackets; Python 2 wrote 3L for 3.
bool ParseShape(std::string_view text, std::vector<int64_t>* shape) {
  std::vector<std::string_view> sizes = absl::StrSplit(text, ',');
  if (absl::StripAsciiWhitespace(sizes.back()).empty()) sizes.pop_back();
  if (sizes.size() > kMaxDimensions) return false;
  for (std::string_view size : sizes) {
    size = absl::StripSuffix(absl::StripAsciiWhitespace(size), "L");
    if (!absl::SimpleAtoi(size, &shape->emplace_back())) return false;
  }
  return true;
}

// Removes the entry of `key` from a dictionary's entries if its value matches
// `pattern`, and sets `value` to what the pattern's group matched.
bool TakeEntry(std::string_view key, std::string_view pattern,
               std::string* entries, std::string* value) {
  const RE2 entry(
      absl::StrCat(R"(['"])", key, R"(['"]\s*:\s*)", pattern, R"(\s*,?)"),
      RE2::Latin1);
  return RE2::PartialMatch(*entries, entry, value) &&
         RE2::Replace(entries, entry, "");
}

// Parses the dictionary, such as {'descr': '<f4', 'fortran_order': False,
// 'shape': (3, 4), }
absl::StatusOr<NpyHeader> ParseDictionary(const std::string& text) {
  NpyHeader header;
  std::string entries, type, order, shape;
  RE2::FullMatch(text, RE2(R"((?s)\s*\{(.*)\}\s*)", RE2::Latin1), &entries);
  if (TakeEntry("descr", R"(['"]([^'"]*)['"])", &entries, &type)) {
    REQUANT_RETURN_IF_ERROR(ParseType(type, &header));
  } else if (TakeEntry("descr", R"(([^'"\s]))", &entries, &type)) {
    return absl::InvalidArgumentError(
        "its elements are records of several fields; save each field as an "
        "array of its own");
  }
  if (header.kind == 0 ||
      !TakeEntry("fortran_order", "(True|False)", &entries, &order) ||
      !TakeEntry("shape", R"(\(([\d\sL,]*)\))", &entries, &shape) ||
      !absl::StripAsciiWhitespace(entries).empty() ||
      !ParseShape(shape, &header.shape)) {
    return absl::DataLossError("its .npy header cannot be read");
  }
  header.fortran_order = order == "True";
  return header;
}

absl::StatusOr<std::string> ReadExactly(InputFile* file, size_t size) {
  std::string bytes(size, '\0');
  REQUANT_ASSIGN_OR_RETURN(const size_t got,
                           ReadFully(file, bytes.data(), size));
  if (got == size) return bytes;
  return absl::DataLossError("it ends within its header");
}

template <typename T>
constexpr bool kIsFloat = !std::is_integral_v<T>;

// Returns the number of a float type's mantissa bits, with the hidden one.
template <typename T>
constexpr int MantissaBits() {
  if (std::is_same_v<T, double>) return 53;
  if (std::is_same_v<T, float>) return 24;
  return std::is_same_v<T, half> ? 11 : 8;
}

template <typename From, typename To>
constexpr bool IsExact() {
  if constexpr (std::is_same_v<From, To>) {
    return true;
  } else if constexpr (std::is_same_v<To, bool>) {
    return false;
  } else if constexpr (kIsFloat<From> && kIsFloat<To>) {
    return std::is_same_v<To, bfloat16>
               ? std::is_same_v<From, float>
               : MantissaBits<From>() < MantissaBits<To>();
  } else if constexpr (kIsFloat<From>) {
    return false;
  } else if constexpr (kIsFloat<To>) {
    return std::numeric_limits<From>::digits <= MantissaBits<To>();
  } else {
    return std::numeric_limits<From>::digits <=
               std::numeric_limits<To>::digits &&
           (std::is_unsigned_v<From> || std::is_signed_v<To>);
  }
}

template <typename From, typename To>
void Convert(const char* from, int64_t, int64_t count, void* to) {
  To* const values = static_cast<To*>(to);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<From, bool>) {
      values[i] = static_cast<To>(from[i] != 0);
    } else {
      From value;
      std::memcpy(&value, from + i * sizeof(From), sizeof(From));
      values[i] = static_cast<To>(value);
    }
  }
}

// Drops the zeros with which NumPy pads bytes, as NumPy itself does.
void ConvertBytes(const char* from, int64_t item_bytes, int64_t count,
                  void* to) {
  for (int64_t i = 0; i < count; ++i, from += item_bytes) {
    int64_t size = item_bytes;
    while (size > 0 && from[size - 1] == 0) --size;
    static_cast<tstring*>(to)[i].assign(from, size);
  }
}

void ConvertText(const char* from, int64_t item_bytes, int64_t count,
                 void* to) {
  std::string text;
  for (int64_t i = 0; i < count; ++i, from += item_bytes) {
    int64_t size = item_bytes;
    uint32_t code = 0;
    const auto last = [&] {
      std::memcpy(&code, from + size - sizeof(code), sizeof(code));
      return code;
    };
    while (size > 0 && last() == 0) size -= sizeof(code);
    text.clear();
    for (int64_t at = 0; at < size; at += sizeof(code)) {
      std::memcpy(&code, from + at, sizeof(code));
      AppendUtf8(code, &text);
    }
    static_cast<tstring*>(to)[i].assign(text.data(), text.size());
  }
}

template <typename From>
NpyConverter ConverterFrom(DataType dtype) {
  return VisitType(dtype, [](auto* type) -> NpyConverter {
    using To = std::remove_pointer_t<decltype(type)>;
    if constexpr (!std::is_same_v<To, tstring>) {
      if constexpr (IsExact<From, To>()) return Convert<From, To>;
    }
    return nullptr;
  });
}

NpyConverter Converter(const NpyHeader& header, DataType dtype) {
  const auto by_size = [&](auto one, auto two, auto four, auto eight) {
    switch (header.item_bytes) {
      case 1:
        return ConverterFrom<decltype(one)>(dtype);
      case 2:
        return ConverterFrom<decltype(two)>(dtype);
      case 4:
        return ConverterFrom<decltype(four)>(dtype);
      default:
        return ConverterFrom<decltype(eight)>(dtype);
    }
  };
  switch (header.kind) {
    case 'f':
      return by_size(half(), half(), float(), double());
    case 'i':
      return by_size(int8_t(), int16_t(), int32_t(), int64_t());
    case 'u':
      return by_size(uint8_t(), uint16_t(), uint32_t(), uint64_t());
    case 'b':
      return ConverterFrom<bool>(dtype);
    case 'S':
      return dtype == tensorflow::DT_STRING ? ConvertBytes : nullptr;
    default:
      return dtype == tensorflow::DT_STRING ? ConvertText : nullptr;
  }
}

// Returns NumPy's name of the type, such as "float32".
std::string TypeName(const NpyHeader& header) {
  switch (header.kind) {
    case 'f':
      return absl::StrCat("float", header.item_bytes * 8);
    case 'i':
      return absl::StrCat("int", header.item_bytes * 8);
    case 'u':
      return absl::StrCat("uint", header.item_bytes * 8);
    case 'b':
      return "bool";
    case 'S':
      return "bytes";
    default:
      return "str";
  }
}

// Returns the type of such elements in Python.
std::string NumPyType(DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      return "numpy.float32";
    case tensorflow::DT_DOUBLE:
      return "numpy.float64";
    case tensorflow::DT_HALF:
      return "numpy.float16";
    case tensorflow::DT_BFLOAT16:
      return "ml_dtypes.bfloat16";
    case tensorflow::DT_BOOL:
      return "bool";
    case tensorflow::DT_STRING:
      return "str";
    default:
      return absl::StrCat("numpy.", tensorflow::DataTypeString(dtype));
  }
}

}  // namespace

absl::StatusOr<NpyHeader> ReadNpyHeader(InputFile* file) {
  REQUANT_ASSIGN_OR_RETURN(const std::string start,
                           ReadExactly(file, kMagicBytes + 2));
  if (!absl::StartsWith(start, std::string_view(kMagic, kMagicBytes))) {
    return absl::DataLossError("it is not an .npy array");
  }
  const int version = static_cast<unsigned char>(start[kMagicBytes]);
  if (version < 1 || version > 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its .npy version is ", version, "; 1, 2 and 3 are known"));
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  REQUANT_ASSIGN_OR_RETURN(const std::string length_text,
                           ReadExactly(file, length_bytes));
  uint32_t length = 0;
  std::memcpy(&length, length_text.data(), length_bytes);
  if (length > kMaxHeaderBytes) {
    return absl::DataLossError(
        absl::StrCat("its .npy header claims to have ", length, " bytes"));
  }
  REQUANT_ASSIGN_OR_RETURN(const std::string text, ReadExactly(file, length));
  return ParseDictionary(text);
}

absl::StatusOr<NpyConverter> NpyConverterTo(const NpyHeader& header,
                                            DataType dtype) {
  const NpyConverter converter = Converter(header, dtype);
  if (converter != nullptr) return converter;
  return absl::InvalidArgumentError(absl::StrCat(
      "it has ", TypeName(header), " values, not all of which ",
      tensorflow::DataTypeString(dtype),
      " can hold; save the array as one of that type: array.astype(",
      NumPyType(dtype), ")"));
}

}  // namespace requant
