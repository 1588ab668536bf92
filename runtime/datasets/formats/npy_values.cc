#include "runtime/datasets/formats/npy_values.h"

#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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

template <typename T>
constexpr bool kIsFloat = !std::is_integral_v<T>;

// The bits of a float type's mantissa, with the hidden one.
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

// NumPy pads bytes with zeros and gives them back without.
void ConvertBytes(const char* from, int64_t item_bytes, int64_t count,
                  void* to) {
  for (int64_t i = 0; i < count; ++i, from += item_bytes) {
    int64_t size = item_bytes;
    while (size > 0 && from[size - 1] == 0) --size;
    static_cast<tstring*>(to)[i].assign(from, size);
  }
}

void AppendUtf8(uint32_t code, std::string* text) {
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) code = 0xfffd;
  if (code < 0x80) {
    text->push_back(static_cast<char>(code));
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned char kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  text->push_back(static_cast<char>(kFirst[more] | code >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) {
    text->push_back(static_cast<char>(0x80 | (code >> (6 * i) & 0x3f)));
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

template <typename From, typename To>
NpyConverter ConverterIfExact() {
  if constexpr (IsExact<From, To>()) return Convert<From, To>;
  return nullptr;
}

template <typename From>
NpyConverter ConverterFrom(DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      return ConverterIfExact<From, float>();
    case tensorflow::DT_DOUBLE:
      return ConverterIfExact<From, double>();
    case tensorflow::DT_HALF:
      return ConverterIfExact<From, half>();
    case tensorflow::DT_BFLOAT16:
      return ConverterIfExact<From, bfloat16>();
    case tensorflow::DT_INT8:
      return ConverterIfExact<From, int8_t>();
    case tensorflow::DT_UINT8:
      return ConverterIfExact<From, uint8_t>();
    case tensorflow::DT_INT32:
      return ConverterIfExact<From, int32_t>();
    case tensorflow::DT_INT64:
      return ConverterIfExact<From, int64_t>();
    case tensorflow::DT_BOOL:
      return ConverterIfExact<From, bool>();
    default:
      return nullptr;
  }
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

}  // namespace

absl::StatusOr<NpyConverter> NpyConverterTo(const NpyHeader& header,
                                            DataType dtype) {
  const NpyConverter converter = Converter(header, dtype);
  if (converter != nullptr) return converter;
  return absl::InvalidArgumentError(absl::StrCat(
      "it has ", header.TypeName(), " values, not all of which ",
      DtypeName(dtype),
      " can hold; declare another dtype, or save the array with one"));
}

}  // namespace requant
