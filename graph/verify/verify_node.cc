#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/message_text.h"
#include "base/text/nearest_name.h"
#include "graph/constant_store.h"
#include "graph/op_catalog.h"
#include "graph/verify/verify_parts.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace requant {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::OpDef;
using tensorflow::TensorProto;

namespace {

bool IsPrivate(const std::string& name) {
  return !name.empty() && name[0] == '_';
}

// Returns how many values the field for the tensor's type has, or -1 for types
// with uncounted values.
int64_t CountValues(const TensorProto& tensor) {
  switch (tensor.dtype()) {
    case tensorflow::DT_FLOAT:
      return tensor.float_val_size();
    case tensorflow::DT_DOUBLE:
      return tensor.double_val_size();
    case tensorflow::DT_INT64:
      return tensor.int64_val_size();
    case tensorflow::DT_BOOL:
      return tensor.bool_val_size();
    case tensorflow::DT_STRING:
      return tensor.string_val_size();
    case tensorflow::DT_HALF:
    case tensorflow::DT_BFLOAT16:
      return tensor.half_val_size();
    case tensorflow::DT_UINT32:
      return tensor.uint32_val_size();
    case tensorflow::DT_UINT64:
      return tensor.uint64_val_size();
    default:
      return tensorflow::DataTypeIsInteger(tensor.dtype()) ||
                     tensorflow::DataTypeIsQuantized(tensor.dtype())
                 ? tensor.int_val_size()
                 : -1;
  }
}

// Returns why TensorFlow cannot make a tensor from this message, as the end of
// a sentence, or "".
std::string TensorFault(const TensorProto& tensor) {
  const DataType type = tensor.dtype();
  if (!tensorflow::DataType_IsValid(type) || type == tensorflow::DT_INVALID ||
      tensorflow::IsRefType(type)) {
    return absl::StrCat("a tensor of no valid type (", static_cast<int>(type),
                        ")");
  }
  tensorflow::TensorShape shape;
  const absl::Status status =
      tensorflow::TensorShape::BuildTensorShape(tensor.tensor_shape(), &shape);
  if (!status.ok()) {
    return absl::StrCat("a tensor of an impossible shape (",
                        ShortReason(status.message()), ")");
  }
  if (StoredValue(tensor).has_value()) return "";
  const int64_t elements = shape.num_elements();
  const int64_t content = tensor.tensor_content().size();
  const int64_t values = content > 0 ? -1 : CountValues(tensor);
  if (values > elements) {
    return absl::StrCat(values, " values in a tensor of shape ",
                        shape.DebugString());
  }
  const int64_t element_bytes = tensorflow::DataTypeSize(type);
  // This divides because the product of a hostile shape can overflow.
  const bool content_fits =
      element_bytes == 0 ||
      (content % element_bytes == 0 && content / element_bytes == elements);
  if (content > 0 && !content_fits) {
    return absl::StrCat(content, " bytes of content in a ",
                        tensorflow::DataTypeString(type), " tensor of shape ",
                        shape.DebugString());
  }
  // Each string takes at least a byte, which limits what FromProto allocates.
  if (content > 0 && type == tensorflow::DT_STRING &&
      (content < elements || !tensorflow::Tensor().FromProto(tensor))) {
    return absl::StrCat(content, " bytes that are not ", elements, " strings");
  }
  return "";
}

class AttributeCheck {
 public:
  AttributeCheck(const NodePlace& place, OpCatalog* catalog,
                 ProblemList* problems)
      : place_(place), catalog_(*catalog), problems_(*problems) {}

  void CheckValue(const OpDef::AttrDef& declared, const AttrValue& value) {
    if (value.value_case() == AttrValue::kPlaceholder &&
        place_.function != nullptr) {
      CheckPlaceholder(declared.name(), value.placeholder());
      return;
    }
    const absl::Status status = tensorflow::ValidateAttrValue(value, declared);
    if (!status.ok()) {
      Report(absl::StrCat("has a bad attribute ", Quoted(declared.name()), ": ",
                          ShortReason(status.message())));
      return;
    }
    switch (value.value_case()) {
      case AttrValue::kShape:
        CheckShape(declared.name(), value.shape());
        break;
      case AttrValue::kTensor:
        CheckTensor(declared.name(), value.tensor());
        break;
      case AttrValue::kFunc:
        CheckFunction(declared, value.func());
        break;
      case AttrValue::kList:
        CheckList(declared, value.list());
        break;
      default:
        break;
    }
  }

  void CheckUnknown(const OpDef& definition) {
    std::vector<std::string> known, unknown;
    for (const OpDef::AttrDef& declared : definition.attr()) {
      known.push_back(declared.name());
    }
    std::sort(known.begin(), known.end());
    for (const auto& [name, value] : place_.node.attr()) {
      if (!IsPrivate(name) &&
          !std::binary_search(known.begin(), known.end(), name)) {
        unknown.push_back(name);
      }
    }
    std::sort(unknown.begin(), unknown.end());
    for (const std::string& name : unknown) {
      if (problems_.full()) return;
      Report(absl::StrCat("has an attribute ", Quoted(name),
                          " that its op does not know",
                          DidYouMean(name, known)));
    }
  }

  void Report(const std::string& what) {
    place_.Report(ProblemKind::kAttribute, what, &problems_);
  }

 private:
  void CheckPlaceholder(const std::string& name,
                        const std::string& placeholder) {
    if (tensorflow::FindAttr(placeholder, *place_.function) != nullptr) return;
    Report(absl::StrCat("takes its attribute ", Quoted(name), " from ",
                        Quoted(placeholder),
                        ", which the function does not declare"));
  }

  void CheckShape(const std::string& name,
                  const tensorflow::TensorShapeProto& shape) {
    const absl::Status status =
        tensorflow::PartialTensorShape::IsValidShape(shape);
    if (!status.ok()) {
      Report(absl::StrCat("has an impossible shape in its attribute ",
                          Quoted(name), ": ", ShortReason(status.message())));
    }
  }

  void CheckTensor(const std::string& name, const TensorProto& tensor) {
    const std::string fault = TensorFault(tensor);
    if (!fault.empty()) {
      Report(absl::StrCat("has, in its attribute ", Quoted(name), ", ", fault));
      return;
    }
    if (place_.node.op() != "Const") return;
    const auto type = place_.node.attr().find("dtype");
    if (type != place_.node.attr().end() &&
        type->second.value_case() == AttrValue::kType &&
        tensorflow::DataType_IsValid(type->second.type()) &&
        type->second.type() != tensor.dtype()) {
      Report(absl::StrCat(
          "is declared ", tensorflow::DataTypeString(type->second.type()),
          " but its value is ", tensorflow::DataTypeString(tensor.dtype())));
    }
  }

  void CheckFunction(const OpDef::AttrDef& declared,
                     const tensorflow::NameAttrList& function) {
    const bool none_by_default = declared.has_default_value() &&
                                 declared.default_value().func().name().empty();
    if (function.name().empty() && none_by_default) return;
    if (catalog_.Find(function.name()) != nullptr) return;
    Report(absl::StrCat("calls the function ", Quoted(function.name()),
                        " in its attribute ", Quoted(declared.name()),
                        ", which is not in the graph's library"));
  }

  void CheckList(const OpDef::AttrDef& declared,
                 const AttrValue::ListValue& list) {
    for (const auto& shape : list.shape()) {
      if (problems_.full()) return;
      CheckShape(declared.name(), shape);
    }
    for (const auto& tensor : list.tensor()) {
      if (problems_.full()) return;
      CheckTensor(declared.name(), tensor);
    }
    for (const auto& function : list.func()) {
      if (problems_.full()) return;
      CheckFunction(declared, function);
    }
  }

  const NodePlace& place_;
  OpCatalog& catalog_;
  ProblemList& problems_;
};

}  // namespace

void CheckAttributes(const NodePlace& place, const OpEntry& op,
                     OpCatalog* catalog, ProblemList* problems) {
  AttributeCheck check(place, catalog, problems);
  const auto& attributes = place.node.attr();
  size_t known = 0;
  for (const OpDef::AttrDef& declared : op.definition->attr()) {
    if (problems->full()) return;
    const auto found = attributes.find(declared.name());
    if (found != attributes.end()) {
      if (!IsPrivate(declared.name())) ++known;
      check.CheckValue(declared, found->second);
    } else if (!declared.has_default_value()) {
      check.Report(absl::StrCat("lacks the attribute ", Quoted(declared.name()),
                                " (", declared.type(), ")"));
    }
  }
  if (known == attributes.size()) return;
  const size_t others = std::count_if(
      attributes.begin(), attributes.end(),
      [](const auto& attribute) { return !IsPrivate(attribute.first); });
  if (known < others) check.CheckUnknown(*op.definition);
}

void CheckInputTypes(const NodePlace& place, const OpEntry& op,
                     const std::vector<DataType>& inputs,
                     ProblemList* problems) {
  const OpDef& definition = *op.definition;
  const auto expected =
      CountTensors(definition.input_arg(), place.node, definition);
  if (!expected.has_value()) return;
  const int64_t count = inputs.size();
  if (*expected != count) {
    place.Report(
        count < *expected ? ProblemKind::kMissingInput : ProblemKind::kInput,
        absl::StrCat("takes ", CountText(*expected, "input"), " but has ",
                     count),
        problems);
    return;
  }
  size_t next = 0;
  for (const OpDef::ArgDef& argument : definition.input_arg()) {
    const auto types = TypesOfArgument(argument, place.node, definition);
    for (int64_t i = 0; i < types->count; ++i, ++next) {
      const DataType wanted = types->At(i);
      const DataType given = inputs[next];
      if (wanted == tensorflow::DT_INVALID || given == tensorflow::DT_INVALID ||
          tensorflow::TypesCompatible(wanted, given)) {
        continue;
      }
      // One input of a function's node can name several tensors.
      const std::string who = place.function == nullptr
                                  ? Quoted(place.node.input(next))
                                  : "its producer";
      place.Report(ProblemKind::kInput,
                   absl::StrCat("takes ", tensorflow::DataTypeString(wanted),
                                " as input ", next, " but ", who, " gives ",
                                tensorflow::DataTypeString(given)),
                   problems);
      if (problems->full()) return;
    }
  }
}

void CheckInputOrder(const NodePlace& place, ProblemKind kind,
                     ProblemList* problems) {
  bool control = false;
  for (const std::string& input : place.node.input()) {
    const bool is_control = !input.empty() && input[0] == '^';
    if (control && !is_control) {
      place.Report(kind,
                   absl::StrCat("has the data input ", Quoted(input),
                                " after a control input"),
                   problems);
      return;
    }
    control = is_control;
  }
}

}  // namespace requant
