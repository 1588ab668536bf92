#ifndef REQUANT_GRAPH_FREEZE_FREEZE_TABLES_H_
#define REQUANT_GRAPH_FREEZE_FREEZE_TABLES_H_

// Lookup tables that fill themselves. A frozen graph has no node that its user
// runs first, so every lookup waits for the table's initializer, which
// TensorFlow runs each time: with the same content that is allowed and costs
// little.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/freeze/checkpoint.h"
#include "graph/freeze/freeze_model.h"
#include "graph/graph_index.h"

namespace requant {

// Makes the tables that `outputs` need fill themselves, from constants: text
// files and tables in the checkpoint become constants of the graph. `model`'s
// graph has been moved into `index`. Returns the number of tables. A table with
// no initializer, or one whose content is not known, is an error that names it.
absl::StatusOr<int> KeepTablesFilled(
    const std::vector<std::string>& outputs, const FreezeInput& model,
    const std::function<absl::StatusOr<const Checkpoint*>()>& checkpoint,
    GraphIndex* index);

}  // namespace requant

#endif  // REQUANT_GRAPH_FREEZE_FREEZE_TABLES_H_
