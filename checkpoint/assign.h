// ASSIGN_OR_FAIL: ASSIGN_OR_RETURN of base/status.h under a name of this folder's own. That macro's
// first parameter is called `value`, so its body's `.value()` is replaced too and no use compiles.
#ifndef STAGECOACH_CHECKPOINT_ASSIGN_H_
#define STAGECOACH_CHECKPOINT_ASSIGN_H_

#include "base/status.h"

#define ASSIGN_OR_FAIL(lhs, expression) \
  ASSIGN_OR_FAIL_INNER(STAGECOACH_CONCAT(stagecoach_assign_, __LINE__), lhs, expression)
#define ASSIGN_OR_FAIL_INNER(variable, lhs, expression)    \
  auto variable = (expression);                            \
  if (!variable.ok()) return std::move(variable).status(); \
  lhs = std::move(variable).value()

#endif  // STAGECOACH_CHECKPOINT_ASSIGN_H_
