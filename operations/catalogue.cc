#include "operations/catalogue.h"

#include "base/errors/check.h"
#include "base/listed.h"
#include "base/named_list.h"

namespace stagecoach {

STAGECOACH_LISTED(Giver<OperationList>, Operations, STAGECOACH_OPERATIONS)

namespace {

OperationList Listed() {
  OperationList all;
  for (const OperationList& some : CallEach(kListedOperations)) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

const NamedList<Operation>& Catalogue() {
  static const auto* const catalogue = new NamedList<Operation>("operation", Listed());
  return *catalogue;
}

}  // namespace

void Operation::Gradient(const Attributes&, GradientWriter& writer) const {
  writer.Refuse("has no gradient");
}

const std::vector<const Operation*>& AllOperations() { return Catalogue().all(); }

absl::StatusOr<const Operation*> FindOperation(std::string_view name) {
  return Catalogue().Find(name);
}

const Operation& OperationNamed(std::string_view name) {
  const absl::StatusOr<const Operation*> found = FindOperation(name);
  CHECK_OK(found.status());
  return **found;
}

}  // namespace stagecoach
