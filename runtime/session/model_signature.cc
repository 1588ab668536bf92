#include "runtime/session/model_signature.h"

#include <set>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "graph/graph_io.h"
#include "graph/saved_model/saved_model_file.h"
#include "graph/signature_names.h"
#include "runtime/datasets/dataset_spec.h"

namespace requant {
namespace {

using tensorflow::SignatureDef;

// Returns the model's signature, which has no inputs if a graph has none.
absl::StatusOr<SignatureDef> SignatureOf(const ModelSpec& model) {
  if (!SavedModelDirectory(model.path()).empty()) return ReadSignature(model);
  REQUANT_ASSIGN_OR_RETURN(const tensorflow::GraphDef graph,
                           ReadGraph(model.path()));
  return KeptSignature(graph);
}

}  // namespace

absl::StatusOr<SignatureDef> ReadSignature(const ModelSpec& spec) {
  const std::string directory = SavedModelDirectory(spec.path());
  if (directory.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.path(),
                     " is no SavedModel: it has no signature to tell what it "
                     "takes; name a folder with a saved_model.pb in it"));
  }
  REQUANT_ASSIGN_OR_RETURN(
      const tensorflow::MetaGraphDef meta_graph,
      ReadSavedModel(directory, std::set<std::string>(spec.tags().begin(),
                                                      spec.tags().end())));
  const std::string key = MeantSignature(meta_graph, spec.signature());
  REQUANT_RETURN_IF_ERROR(CheckSignature(meta_graph, key, spec.path()));
  return meta_graph.signature_def().at(key);
}

absl::StatusOr<DatasetSpec> GuessJobDataset(
    const std::vector<ModelSpec>& models, const std::vector<std::string>& files,
    const GuessOptions& options) {
  SignatureDef signature;
  for (const ModelSpec& model : models) {
    REQUANT_ASSIGN_OR_RETURN(signature, SignatureOf(model));
    if (!signature.inputs().empty()) break;
  }
  if (signature.inputs().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        models.front().path(),
        " does not say what feeds it, as SavedModels do and graphs that "
        "requant freeze made of those of TensorFlow 2: give a declaration of "
        "the records by --dataset"));
  }
  REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> existing,
                           ExistingFiles(files));
  REQUANT_ASSIGN_OR_RETURN(GuessedDataset guessed,
                           GuessDataset(signature, existing, options));
  std::string_view because = "no --dataset is given: ";
  for (const GuessNote& note : guessed.notes) {
    Say(ProgramName(), absl::StrCat("note: ", because, note.text));
    because = "";
  }
  return std::move(guessed.spec);
}

}  // namespace requant
