#include "graph/freeze/vocabulary_file.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "graph/graph_io.h"
#include "tensorflow/core/framework/types.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// TensorFlow drops every carriage return.
std::vector<std::string> Lines(const std::string& content) {
  std::vector<std::string> lines =
      absl::StrSplit(absl::StrReplaceAll(content, {{"\r", ""}}), '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

// Sets element `i`; false when the text is no value of the tensor's type.
bool SetElement(std::string_view text, int64_t i, Tensor* tensor) {
  switch (tensor->dtype()) {
    case tensorflow::DT_STRING:
      tensor->flat<tensorflow::tstring>()(i).assign(text.data(), text.size());
      return true;
    case tensorflow::DT_INT64:
      return absl::SimpleAtoi(text, &tensor->flat<int64_t>()(i));
    case tensorflow::DT_INT32:
      return absl::SimpleAtoi(text, &tensor->flat<int32_t>()(i));
    case tensorflow::DT_FLOAT:
      return absl::SimpleAtof(text, &tensor->flat<float>()(i));
    case tensorflow::DT_DOUBLE:
      return absl::SimpleAtod(text, &tensor->flat<double>()(i));
    default:
      return false;
  }
}

// The part of line `number` that `index` means; false when it has no such
// column.
bool Field(const std::string& line, int64_t number, int64_t index,
           char delimiter, std::string* field) {
  if (index == VocabularyFormat::kLineNumber) {
    *field = absl::StrCat(number);
    return true;
  }
  if (index == VocabularyFormat::kWholeLine) {
    *field = line;
    return true;
  }
  const std::vector<std::string> columns = absl::StrSplit(line, delimiter);
  if (index < 0 || index >= static_cast<int64_t>(columns.size())) return false;
  *field = columns[index];
  return true;
}

std::string ElementBytes(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == tensorflow::DT_STRING) {
    return std::string(tensor.flat<tensorflow::tstring>()(i));
  }
  const size_t size = tensorflow::DataTypeSize(tensor.dtype());
  return std::string(tensor.tensor_data().substr(i * size, size));
}

Tensor Select(const Tensor& tensor, const std::vector<int64_t>& elements) {
  Tensor selected(tensor.dtype(),
                  TensorShape({static_cast<int64_t>(elements.size())}));
  const size_t size = tensorflow::DataTypeSize(tensor.dtype());
  for (size_t i = 0; i < elements.size(); ++i) {
    if (tensor.dtype() == tensorflow::DT_STRING) {
      selected.flat<tensorflow::tstring>()(i) =
          tensor.flat<tensorflow::tstring>()(elements[i]);
    } else {
      std::memcpy(static_cast<char*>(selected.data()) + i * size,
                  tensor.tensor_data().data() + elements[i] * size, size);
    }
  }
  return selected;
}

bool IsPlainVector(const Tensor& tensor) {
  return tensor.dims() == 1 && (tensor.dtype() == tensorflow::DT_STRING ||
                                tensorflow::DataTypeSize(tensor.dtype()) > 0);
}

}  // namespace

absl::StatusOr<TableContent> ReadVocabulary(const std::string& path,
                                            const VocabularyFormat& format) {
  REQUANT_ASSIGN_OR_RETURN(const std::string text,
                           ReadFile(path, kMaxGraphBytes));
  const std::vector<std::string> lines = Lines(text);
  int64_t count = static_cast<int64_t>(lines.size()) - format.offset;
  if (format.offset < 0 || count < 0 || format.size > count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the vocabulary ", path, " has ", lines.size(),
        " lines, but the graph takes ",
        format.size >= 0 ? absl::StrCat(format.size, " ") : "those ",
        "from line ", format.offset + 1));
  }
  if (format.size >= 0) count = format.size;
  TableContent content{Tensor(format.key_dtype, TensorShape({count})),
                       Tensor(format.value_dtype, TensorShape({count}))};
  for (int64_t i = 0; i < count; ++i) {
    const std::string& line = lines[format.offset + i];
    std::string key, value;
    if (!Field(line, i, format.key_index, format.delimiter, &key) ||
        !Field(line, i, format.value_index, format.delimiter, &value) ||
        !SetElement(key, i, &content.keys) ||
        !SetElement(value, i, &content.values)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ":", format.offset + i + 1, ": the line is no entry with a ",
          tensorflow::DataTypeString(format.key_dtype), " key and a ",
          tensorflow::DataTypeString(format.value_dtype), " value"));
    }
  }
  return content;
}

absl::Status DropRepeatedKeys(TableContent* content) {
  if (!IsPlainVector(content->keys) || !IsPlainVector(content->values) ||
      content->keys.NumElements() != content->values.NumElements()) {
    return absl::OkStatus();
  }
  absl::flat_hash_map<std::string, int64_t> first;
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < content->keys.NumElements(); ++i) {
    const auto [entry, is_new] =
        first.emplace(ElementBytes(content->keys, i), i);
    if (is_new) {
      kept.push_back(i);
    } else if (ElementBytes(content->values, i) !=
               ElementBytes(content->values, entry->second)) {
      return absl::InvalidArgumentError(
          absl::StrCat("entries ", entry->second + 1, " and ", i + 1,
                       " have the same key but different values"));
    }
  }
  if (static_cast<int64_t>(kept.size()) < content->keys.NumElements()) {
    content->keys = Select(content->keys, kept);
    content->values = Select(content->values, kept);
  }
  return absl::OkStatus();
}

}  // namespace requant
