#ifndef REQUANT_RUNTIME_DATASETS_DECLARATION_TEXT_H_
#define REQUANT_RUNTIME_DATASETS_DECLARATION_TEXT_H_

#include <string>

#include "runtime/datasets/guess_dataset.h"

namespace requant {

// Returns the declaration as a text for ReadDatasetSpec. Comments say what each
// field is for, what was guessed, and what is left to fill in.
std::string DeclarationText(const GuessedDataset& guessed);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_DECLARATION_TEXT_H_
