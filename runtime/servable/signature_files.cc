#include "runtime/servable/signature_files.h"

#include <functional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/graph_io.h"
#include "graph/saved_model/saved_model_file.h"
#include "runtime/datasets/dataset_spec.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {
namespace {

class Grouping {
 public:
  explicit Grouping(const ModelSpec& model) : model_(model) {
    files_.push_back({model.signature(), "", {}});
  }

  // Calls `add` for each value, without the name, and the files of its
  // signature.
  absl::Status Add(const std::vector<std::string>& values,
                   const std::function<absl::Status(const std::string&,
                                                    SignatureFiles*)>& add) {
    size_t current = 0;
    for (const std::string& value : values) {
      const size_t equals = value.find('=');
      std::string rest = value;
      if (equals < value.find('/') && !ExistingFiles({value}).ok()) {
        REQUANT_ASSIGN_OR_RETURN(current, IndexOf(value, equals));
        rest = value.substr(equals + 1);
      }
      REQUANT_RETURN_IF_ERROR(add(rest, &files_[current]));
    }
    return absl::OkStatus();
  }

  std::vector<SignatureFiles> Result() && {
    const SignatureFiles& first = files_.front();
    if (files_.size() > 1 && first.declaration.empty() && first.data.empty()) {
      files_.erase(files_.begin());
    }
    return std::move(files_);
  }

 private:
  // The name is the first `length` characters of the value.
  absl::StatusOr<size_t> IndexOf(const std::string& value, size_t length) {
    const std::string name = value.substr(0, length);
    if (!meta_.has_meta_info_def()) {
      REQUANT_ASSIGN_OR_RETURN(const std::string folder,
                               FindSavedModel(model_.path()));
      REQUANT_ASSIGN_OR_RETURN(
          meta_,
          ReadSavedModel(folder, {model_.tags().begin(), model_.tags().end()}));
      meta_.clear_graph_def();
    }
    const absl::Status known = CheckSignature(meta_, name, model_.path());
    if (!known.ok()) {
      return absl::NotFoundError(absl::StrCat(
          known.message(), ", and there is no file \"", value, "\""));
    }
    const auto found = absl::c_find_if(
        files_, [&](const auto& files) { return files.signature == name; });
    if (found != files_.end()) return found - files_.begin();
    files_.push_back({name, "", {}});
    return files_.size() - 1;
  }

  const ModelSpec& model_;
  // The SavedModel's, once it is needed.
  tensorflow::MetaGraphDef meta_;
  std::vector<SignatureFiles> files_;
};

}  // namespace

absl::StatusOr<std::vector<SignatureFiles>> FilesBySignature(
    const ModelSpec& model, const std::vector<std::string>& declarations,
    const std::vector<std::string>& data) {
  Grouping grouping(model);
  REQUANT_RETURN_IF_ERROR(grouping.Add(
      declarations, [](const std::string& path, SignatureFiles* files) {
        if (!files->declaration.empty()) {
          return absl::InvalidArgumentError(absl::StrCat(
              files->declaration, " and ", path,
              " are declarations for the same signature; --dataset=NAME=FILE "
              "says for which one a declaration is"));
        }
        files->declaration = path;
        return absl::OkStatus();
      }));
  REQUANT_RETURN_IF_ERROR(
      grouping.Add(data, [](const std::string& path, SignatureFiles* files) {
        files->data.push_back(path);
        return absl::OkStatus();
      }));
  return std::move(grouping).Result();
}

}  // namespace requant
