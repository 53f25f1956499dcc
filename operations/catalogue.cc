#include "operations/catalogue.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/suggest.h"

namespace stagecoach {
namespace {

OperationList MakeCatalogue() {
  OperationList all;
  for (const OperationList& some :
       {ActivationOperations(), AddOperations(), AttentionOperations(), BatchNormOperations(),
        ConcatenateOperations(), ConvolutionOperations(), CrossEntropyOperations(),
        DropoutOperations(), EmbeddingOperations(), HeadNormOperations(), LayerNormOperations(),
        LinearOperations(), MeanSquaredErrorOperations(), PoolOperations(), ReshapeOperations(),
        RmsNormOperations(), RotaryOperations(), SwigluOperations()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end(),
            [](const Operation* a, const Operation* b) { return a->name() < b->name(); });
  for (size_t i = 1; i < all.size(); ++i) {
    CHECK(all[i - 1]->name() != all[i]->name()) << "two operations " << all[i]->name();
  }
  return all;
}

}  // namespace

void Operation::Gradient(const Attributes&, GradientWriter&) const {
  CHECK(false) << name() << " has no gradient";
}

const std::vector<const Operation*>& AllOperations() {
  static const OperationList* const all = new OperationList(MakeCatalogue());
  return *all;
}

absl::StatusOr<const Operation*> FindOperation(std::string_view name) {
  const OperationList& all = AllOperations();
  const auto found = std::lower_bound(
      all.begin(), all.end(), name,
      [](const Operation* operation, std::string_view n) { return operation->name() < n; });
  if (found != all.end() && (*found)->name() == name) return *found;
  std::vector<std::string> known;
  for (const Operation* operation : all) known.emplace_back(operation->name());
  return absl::NotFoundError(absl::StrCat("there is no operation \"", std::string(name), "\"",
                                          Suggestion(std::string(name), known)));
}

const Operation& OperationNamed(std::string_view name) {
  const absl::StatusOr<const Operation*> found = FindOperation(name);
  CHECK_OK(found.status());
  return **found;
}

}  // namespace stagecoach
