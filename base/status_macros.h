#ifndef REQUANT_BASE_STATUS_MACROS_H_
#define REQUANT_BASE_STATUS_MACROS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function when `expr` is not OK.
#define REQUANT_RETURN_IF_ERROR(expr)                \
  do {                                               \
    absl::Status requant_status = (expr);            \
    if (!requant_status.ok()) return requant_status; \
  } while (false)

// Assigns the value of the StatusOr `expr` to `lhs` (which may declare a
// variable), or returns its status from the enclosing function.
#define REQUANT_ASSIGN_OR_RETURN(lhs, expr)                                   \
  REQUANT_ASSIGN_OR_RETURN_(REQUANT_CONCAT_(requant_statusor, __LINE__), lhs, \
                            expr)
#define REQUANT_ASSIGN_OR_RETURN_(statusor, lhs, expr) \
  auto statusor = (expr);                              \
  if (!statusor.ok()) return statusor.status();        \
  lhs = *std::move(statusor)
#define REQUANT_CONCAT_(a, b) REQUANT_CONCAT_INNER_(a, b)
#define REQUANT_CONCAT_INNER_(a, b) a##b

#endif  // REQUANT_BASE_STATUS_MACROS_H_
