#include "runtime/datasets/formats/npy_header.h"

#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace requant {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicBytes = 6;
// NumPy itself reads no more than 10,000 unless told to.
constexpr uint32_t kMaxHeaderBytes = 1 << 20;
constexpr int64_t kMaxItemBytes = 1 << 20;
constexpr size_t kMaxDimensions = 64;

// Takes Python literals off the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool Take(std::string_view token) {
    text_ = absl::StripLeadingAsciiWhitespace(text_);
    if (!absl::StartsWith(text_, token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  // 'text' or "text", without escapes.
  bool TakeString(std::string_view* value) {
    text_ = absl::StripLeadingAsciiWhitespace(text_);
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return false;
    const size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) return false;
    *value = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return true;
  }

  bool TakeBool(bool* value) {
    *value = Take("True");
    return *value || Take("False");
  }

  // (), (3,), (3, 4); Python 2 wrote 3L for 3.
  bool TakeShape(std::vector<int64_t>* shape) {
    if (!Take("(")) return false;
    while (!Take(")")) {
      text_ = absl::StripLeadingAsciiWhitespace(text_);
      size_t digits = 0;
      while (digits < text_.size() && absl::ascii_isdigit(text_[digits])) {
        ++digits;
      }
      int64_t size = 0;
      if (!absl::SimpleAtoi(text_.substr(0, digits), &size)) return false;
      text_.remove_prefix(digits);
      Take("L");
      shape->push_back(size);
      if (!Take(",") && !absl::StartsWith(text_, ")")) return false;
    }
    return true;
  }

  bool AtEnd() { return absl::StripLeadingAsciiWhitespace(text_).empty(); }

 private:
  std::string_view text_;
};

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

// '<f4': byte order, kind and size.
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

absl::StatusOr<std::string> ReadExactly(InputFile* file, size_t size) {
  std::string bytes(size, '\0');
  REQUANT_ASSIGN_OR_RETURN(const size_t got,
                           ReadFully(file, bytes.data(), size));
  if (got == size) return bytes;
  return absl::DataLossError("it ends within its header");
}

}  // namespace

std::string NpyHeader::TypeName() const {
  switch (kind) {
    case 'f':
      return absl::StrCat("float", item_bytes * 8);
    case 'i':
      return absl::StrCat("int", item_bytes * 8);
    case 'u':
      return absl::StrCat("uint", item_bytes * 8);
    case 'b':
      return "bool";
    case 'S':
      return "bytes";
    default:
      return "str";
  }
}

absl::StatusOr<size_t> ReadFully(InputFile* file, char* buffer, size_t size) {
  size_t got = 0;
  while (got < size) {
    REQUANT_ASSIGN_OR_RETURN(const size_t n,
                             file->Read(buffer + got, size - got));
    if (n == 0) break;
    got += n;
  }
  return got;
}

absl::StatusOr<NpyHeader> ParseNpyDictionary(std::string_view text) {
  NpyHeader header;
  bool has_descr = false, has_order = false, has_shape = false;
  Scanner scanner(text);
  bool good = scanner.Take("{");
  while (good && !scanner.Take("}")) {
    std::string_view key, descr;
    good = scanner.TakeString(&key) && scanner.Take(":");
    if (!good) break;
    if (key == "descr" && !has_descr) {
      has_descr = true;
      if (!scanner.TakeString(&descr)) {
        return absl::InvalidArgumentError(
            "its elements are records of several fields; save each field as an "
            "array of its own");
      }
      REQUANT_RETURN_IF_ERROR(ParseType(descr, &header));
    } else if (key == "fortran_order" && !has_order) {
      has_order = good = scanner.TakeBool(&header.fortran_order);
    } else if (key == "shape" && !has_shape) {
      has_shape = good = scanner.TakeShape(&header.shape);
    } else {
      good = false;
    }
    scanner.Take(",");
  }
  if (good && scanner.AtEnd() && has_descr && has_order && has_shape &&
      header.shape.size() <= kMaxDimensions) {
    return header;
  }
  return absl::DataLossError("its .npy header cannot be read");
}

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
  return ParseNpyDictionary(text);
}

}  // namespace requant
