#include "runtime/servable/check_graph.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "runtime/quantization/quantize.h"
#include "runtime/session/model.h"

namespace requant {
namespace {

// What models usually keep, and hardly any loses more than: the least share of
// records with the same class, and the largest drop of the accuracy in points.
constexpr double kUsualAgreement = 0.99;
constexpr double kUsualDrop = 0.5;

absl::StatusOr<EvaluateResult> Compare(const std::string& graph,
                                       const CalibrateJob& job,
                                       const std::vector<std::string>& outputs,
                                       SignatureRecords records) {
  REQUANT_ASSIGN_OR_RETURN(const std::string path, MemoryFile(graph));
  ModelSpec candidate;
  candidate.set_path(path);
  PredictionSpec& prediction = *records.dataset.mutable_prediction();
  if (prediction.tensor().empty()) prediction.set_tensor(outputs.front());
  return CompareModels(job.model(), candidate, records, job);
}

}  // namespace

absl::StatusOr<SignatureRecords> HoldBack(bool exact, CalibrateJob* job) {
  REQUANT_ASSIGN_OR_RETURN(SignatureRecords records,
                           DivideRecords("", job->dataset(), job->max_records(),
                                         job->max_bad_records(), exact));
  records.held_back = std::min(records.held_back, kMostCompared);
  job->set_max_records(records.calibrated);
  return records;
}

std::string EvaluateCommand(const EvaluationNames& names,
                            const PredictionSpec& prediction,
                            const std::vector<std::string>& outputs) {
  std::string command =
      absl::StrCat("requant evaluate --graph=", ShellQuoted(names.graph),
                   " --baseline=", ShellQuoted(names.baseline));
  if (!names.dataset.empty()) {
    absl::StrAppend(&command, " --dataset=", ShellQuoted(names.dataset));
  }
  absl::StrAppend(&command, " --data=RECORDS");
  if (prediction.tensor().empty() ||
      (names.dataset.empty() && !outputs.empty())) {
    absl::StrAppend(&command, " --output=", ShellQuoted(outputs.front()));
  }
  return command;
}

std::string LossWarning(const Comparison& comparison) {
  std::string loss;
  if (comparison.accuracy().interval().high() < -kUsualDrop) {
    loss = absl::StrFormat("loses %.2f points of accuracy",
                           -comparison.accuracy().points());
  } else if (comparison.has_agreement() &&
             comparison.agreement().interval().high() < kUsualAgreement) {
    loss = absl::StrFormat("agrees with the float one on %.2f %% of records",
                           100 * comparison.agreement().share());
  } else {
    return "";
  }
  return absl::StrCat(
      "the int8 graph ", loss,
      ", which is worse than usual: requant evaluate --layer_records=1024 with "
      "the float graph as --baseline tells which layers lose most, and "
      "--excluded_nodes leaves them in float");
}

std::string CheckGraph(const std::string& graph, const CalibrateJob& job,
                       const std::vector<std::string>& outputs,
                       const SignatureRecords& records,
                       const EvaluationNames& names) {
  if (records.held_back == 0) {
    return "not compared with the float graph: there are no records after "
           "those that it was calibrated on\n";
  }
  const auto result = Compare(graph, job, outputs, records);
  if (!result.ok()) {
    return absl::StrCat("not compared with the float graph: ",
                        Printable(result.status().message()), "\n");
  }
  const std::string warning = LossWarning(result->comparison());
  if (!warning.empty()) SayWarning(warning);
  return ComparisonText(*result, names);
}

}  // namespace requant
