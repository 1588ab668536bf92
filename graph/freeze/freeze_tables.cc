#include <cstring>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/freeze/freeze_parts.h"
#include "graph/freeze/needed_nodes.h"
#include "graph/graph_io.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/types.h"

namespace requant {

using tensorflow::DataType;
using tensorflow::NodeDef;
using tensorflow::Tensor;
using tensorflow::TensorShape;

namespace {

// Like TensorFlow, drops every carriage return.
std::vector<std::string> Lines(const std::string& content) {
  std::vector<std::string> lines =
      absl::StrSplit(absl::StrReplaceAll(content, {{"\r", ""}}), '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

// Sets element `i`; returns false if the text is invalid for the type.
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

// Finds the part of line `number` that `index` selects; returns false if the
// line has no such column.
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

bool IsStaticTable(const NodeDef& node) {
  return node.op() == "HashTable" || node.op() == "HashTableV2" ||
         node.op() == "AnonymousHashTable";
}

bool IsTable(const NodeDef& node) {
  return IsStaticTable(node) ||
         absl::StartsWith(node.op(), "MutableHashTable") ||
         absl::StartsWith(node.op(), "MutableDenseHashTable") ||
         absl::StartsWith(node.op(), "AnonymousMutable");
}

bool IsTextInitializer(const NodeDef& node) {
  return absl::StartsWith(node.op(), "InitializeTableFromTextFile");
}

tensorflow::DataType TypeOf(const NodeDef& node, const std::string& attribute) {
  const auto found = node.attr().find(attribute);
  return found == node.attr().end() ? tensorflow::DT_INVALID
                                    : found->second.type();
}

int64_t IntegerOf(const NodeDef& node, const std::string& attribute,
                  int64_t otherwise) {
  const auto found = node.attr().find(attribute);
  return found == node.attr().end() ? otherwise : found->second.i();
}

class TableKeeper {
 public:
  TableKeeper(
      const FreezeInput& model,
      const std::function<absl::StatusOr<const Checkpoint*>()>& checkpoint,
      GraphIndex* index, std::vector<VocabularyNode>* vocabularies)
      : model_(model),
        checkpoint_(checkpoint),
        index_(*index),
        vocabularies_(*vocabularies),
        loading_(NeededNodes(*index, model.initializers)),
        restoring_(NeededNodes(*index, {model.restore_op})) {
    for (const NodeDef& listed : index->graph().node()) {
      if (!IsTableInitializer(listed)) continue;
      const NodeDef* table = SourceOf(*index, listed, 0).node;
      initializers_[table].push_back(index->Find(listed.name()));
    }
  }

  absl::StatusOr<int> Keep(const std::vector<std::string>& outputs);

 private:
  absl::StatusOr<NodeDef*> FindInitializer(const NodeDef& table) const;
  absl::StatusOr<std::string> FileOf(const NodeDef& initializer) const;
  absl::StatusOr<std::string> PathIn(Source source, int depth) const;
  absl::Status FillFromFile(const NodeDef& table, NodeDef* initializer);
  absl::Status FillFromCheckpoint(NodeDef* initializer);
  absl::Status DropRepeated(const NodeDef& table, NodeDef* initializer);
  absl::Status SetContent(const TableContent& content, NodeDef* initializer);
  void MakeReadersWait(const NodeDef& table, const NodeDef& initializer);

  const FreezeInput& model_;
  const std::function<absl::StatusOr<const Checkpoint*>()>& checkpoint_;
  GraphIndex& index_;
  std::vector<VocabularyNode>& vocabularies_;
  const NodeSet loading_;
  const NodeSet restoring_;
  // The initializers by table.
  absl::flat_hash_map<const NodeDef*, std::vector<NodeDef*>> initializers_;
};

// Returns the one that runs when the model is loaded, or else the only one.
absl::StatusOr<NodeDef*> TableKeeper::FindInitializer(
    const NodeDef& table) const {
  std::vector<NodeDef*> restored, loaded, others;
  const auto found = initializers_.find(&table);
  if (found != initializers_.end()) {
    for (NodeDef* node : found->second) {
      auto& group = restoring_.contains(node) ? restored
                    : loading_.contains(node) ? loaded
                                              : others;
      group.push_back(node);
    }
  }
  for (const auto* candidates : {&restored, &loaded, &others}) {
    if (candidates->size() == 1) return candidates->front();
    if (candidates->size() > 1) {
      return absl::UnimplementedError(absl::StrCat(
          "the lookup table \"", table.name(),
          "\" is filled by several nodes (", (*candidates)[0]->name(), ", ",
          (*candidates)[1]->name(), "), so its content is not known"));
    }
  }
  return absl::NotFoundError(absl::StrCat(
      "the lookup table \"", table.name(), "\" (", table.op(),
      ") is filled by no node of the graph, so its content is not known; name "
      "what fills it with --initializer_nodes or choose outputs that do not "
      "need it"));
}

// Returns the file name in a tensor: an asset's name or a constant. TensorFlow
// 2 passes it through a variable that is assigned when the model is loaded.
absl::StatusOr<std::string> TableKeeper::PathIn(Source source,
                                                int depth) const {
  if (source.node == nullptr || depth > 10) {
    return absl::NotFoundError("no file name");
  }
  const auto asset = model_.assets.find(source.node->name());
  if (asset != model_.assets.end()) return asset->second;
  if (source.node->op() == "ReadVariableOp") {
    const NodeDef* variable = SourceOf(index_, *source.node, 0).node;
    if (variable == nullptr) return absl::NotFoundError("no file name");
    for (const Use& use : index_.Uses(variable->name())) {
      if (use.node->op() == "AssignVariableOp" && loading_.contains(use.node)) {
        return PathIn(SourceOf(index_, *use.node, 1), depth + 1);
      }
    }
  }
  if (source.node->op() == "PlaceholderWithDefault") {
    return PathIn(SourceOf(index_, *source.node, 0), depth + 1);
  }
  REQUANT_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*source.node));
  if (value.dtype() != tensorflow::DT_STRING || value.NumElements() != 1) {
    return absl::NotFoundError("no file name");
  }
  return std::string(value.flat<tensorflow::tstring>()(0));
}

absl::StatusOr<std::string> TableKeeper::FileOf(
    const NodeDef& initializer) const {
  const auto path = PathIn(SourceOf(index_, initializer, 1), 0);
  if (path.ok()) return path;
  return absl::UnimplementedError(
      absl::StrCat("the name of the vocabulary file of \"", initializer.name(),
                   "\" is neither a constant nor an asset of the SavedModel"));
}

absl::Status TableKeeper::SetContent(const TableContent& content,
                                     NodeDef* initializer) {
  std::vector<std::string> inputs = {initializer->input(0)};
  const auto add = [&](const char* name, const Tensor& value) -> absl::Status {
    NodeDef node = MakeConst(
        index_.FreeName(absl::StrCat(initializer->name(), "/", name)), value);
    inputs.push_back(node.name());
    return index_.Add(std::move(node)).status();
  };
  REQUANT_RETURN_IF_ERROR(add("keys", content.keys));
  REQUANT_RETURN_IF_ERROR(add("values", content.values));
  index_.SetInputs(initializer, std::move(inputs));
  return absl::OkStatus();
}

absl::Status TableKeeper::FillFromFile(const NodeDef& table,
                                       NodeDef* initializer) {
  REQUANT_ASSIGN_OR_RETURN(const std::string path, FileOf(*initializer));
  VocabularyFormat format;
  format.key_dtype = TypeOf(table, "key_dtype");
  format.value_dtype = TypeOf(table, "value_dtype");
  format.key_index = IntegerOf(*initializer, "key_index", 0);
  format.value_index = IntegerOf(*initializer, "value_index", 0);
  format.size = IntegerOf(*initializer, "vocab_size", -1);
  format.offset = IntegerOf(*initializer, "offset", 0);
  const auto delimiter = initializer->attr().find("delimiter");
  if (delimiter != initializer->attr().end() &&
      delimiter->second.s().size() == 1) {
    format.delimiter = delimiter->second.s()[0];
  }
  REQUANT_ASSIGN_OR_RETURN(TableContent content, ReadVocabulary(path, format));
  const absl::Status unique = DropRepeatedKeys(&content);
  if (!unique.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("in the vocabulary ", path, " ", unique.message()));
  }
  vocabularies_.push_back({*initializer, path});
  initializer->set_op(absl::EndsWith(initializer->op(), "V2")
                          ? "InitializeTableV2"
                          : "InitializeTable");
  initializer->mutable_attr()->clear();
  (*initializer->mutable_attr())["Tkey"].set_type(format.key_dtype);
  (*initializer->mutable_attr())["Tval"].set_type(format.value_dtype);
  return SetContent(content, initializer);
}

absl::Status TableKeeper::FillFromCheckpoint(NodeDef* initializer) {
  REQUANT_ASSIGN_OR_RETURN(const Checkpoint* checkpoint, checkpoint_());
  TableContent content;
  REQUANT_ASSIGN_OR_RETURN(const CheckpointTensor keys,
                           RestoredInput(index_, *initializer, 1));
  REQUANT_ASSIGN_OR_RETURN(content.keys, checkpoint->Read(keys));
  REQUANT_ASSIGN_OR_RETURN(const CheckpointTensor values,
                           RestoredInput(index_, *initializer, 2));
  REQUANT_ASSIGN_OR_RETURN(content.values, checkpoint->Read(values));
  return SetContent(content, initializer);
}

absl::Status TableKeeper::DropRepeated(const NodeDef& table,
                                       NodeDef* initializer) {
  const NodeDef* keys = SourceOf(index_, *initializer, 1).node;
  const NodeDef* values = SourceOf(index_, *initializer, 2).node;
  if (!IsStaticTable(table) || keys == nullptr || values == nullptr ||
      keys->op() != "Const" || values->op() != "Const") {
    return absl::OkStatus();
  }
  TableContent content;
  REQUANT_ASSIGN_OR_RETURN(content.keys, ConstValue(*keys));
  REQUANT_ASSIGN_OR_RETURN(content.values, ConstValue(*values));
  const int64_t count = content.keys.NumElements();
  const absl::Status unique = DropRepeatedKeys(&content);
  if (!unique.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "in the lookup table \"", table.name(), "\" ", unique.message()));
  }
  return content.keys.NumElements() == count ? absl::OkStatus()
                                             : SetContent(content, initializer);
}

void TableKeeper::MakeReadersWait(const NodeDef& table,
                                  const NodeDef& initializer) {
  const std::string control = absl::StrCat("^", initializer.name());
  for (const Use& use : index_.Uses(table.name())) {
    if (use.port == kControlPort || use.node == &initializer ||
        IsTableInitializer(*use.node)) {
      continue;
    }
    std::vector<std::string> inputs(use.node->input().begin(),
                                    use.node->input().end());
    bool waits = false;
    for (const std::string& input : inputs) waits = waits || input == control;
    if (waits) continue;
    inputs.push_back(control);
    index_.SetInputs(use.node, std::move(inputs));
  }
}

absl::StatusOr<int> TableKeeper::Keep(const std::vector<std::string>& outputs) {
  const NodeSet needed = NeededNodes(index_, outputs);
  std::vector<const NodeDef*> tables;
  for (const NodeDef& node : index_.graph().node()) {
    if (IsTable(node) && needed.contains(&node)) tables.push_back(&node);
  }
  for (const NodeDef* table : tables) {
    REQUANT_ASSIGN_OR_RETURN(NodeDef * initializer, FindInitializer(*table));
    if (IsTextInitializer(*initializer)) {
      REQUANT_RETURN_IF_ERROR(FillFromFile(*table, initializer));
    } else if (RestoredInput(index_, *initializer, 1).ok()) {
      REQUANT_RETURN_IF_ERROR(FillFromCheckpoint(initializer));
    } else {
      REQUANT_RETURN_IF_ERROR(DropRepeated(*table, initializer));
    }
    MakeReadersWait(*table, *initializer);
  }
  return static_cast<int>(tables.size());
}

}  // namespace

bool IsTableInitializer(const NodeDef& node) {
  return absl::StartsWith(node.op(), "InitializeTable") ||
         absl::StartsWith(node.op(), "LookupTableImport");
}

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

absl::StatusOr<int> KeepTablesFilled(
    const std::vector<std::string>& outputs, const FreezeInput& model,
    const std::function<absl::StatusOr<const Checkpoint*>()>& checkpoint,
    GraphIndex* index, std::vector<VocabularyNode>* vocabularies) {
  return TableKeeper(model, checkpoint, index, vocabularies).Keep(outputs);
}

}  // namespace requant
