// FormatLists: one line a call.
//   v7 = linear_input_gradient gelu=true (v5, w2, v3); drops v5 v3
#include "absl/strings/str_cat.h"
#include "network/lists/lists.h"

namespace stagecoach {
namespace {

// Inputs x, parameters w, gradients of parameters dw, states s, accumulators a, everything else v;
// each with its own count where it has one.
class Names {
 public:
  explicit Names(const LayerLists& lists) {
    names_.resize(lists.values.size());
    Name(lists.inputs, "x");
    Name(lists.parameters, "w");
    Name(lists.output_gradients, "dy");
    Name(lists.parameter_gradients, "dw");
    Name(lists.states, "s");
    Name(lists.accumulators, "a");
    int next = 0;
    for (std::string& name : names_) {
      if (name.empty()) name = absl::StrCat("v", next++);
    }
  }
  std::string Of(ValueId id) const {
    return id.valid() ? names_[static_cast<size_t>(id.value)] : "none";
  }
  std::string Of(const std::vector<ValueId>& ids, const char* separator) const {
    std::string text;
    for (const ValueId id : ids) absl::StrAppend(&text, text.empty() ? "" : separator, Of(id));
    return text;
  }

 private:
  void Name(const std::vector<ValueId>& ids, const char* prefix) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i].valid()) names_[static_cast<size_t>(ids[i].value)] = absl::StrCat(prefix, i);
    }
  }

  std::vector<std::string> names_;
};

void AppendList(const char* title, const CallList& list, const Names& names, std::string* text) {
  absl::StrAppend(text, title, "\n");
  for (const ListedCall& listed : list.calls) {
    const Call& call = listed.call;
    const std::string attributes = FormatAttributes(call.attributes);
    const bool gives_and_adds = !call.outputs.empty() && !call.adds.empty();
    absl::StrAppend(text, "  ", names.Of(call.outputs, ", "), gives_and_adds ? "; " : "");
    absl::StrAppend(text, names.Of(call.adds, ", "), call.adds.empty() ? " = " : " += ");
    absl::StrAppend(text, call.operation, attributes.empty() ? "" : " ", attributes, " (",
                    names.Of(call.inputs, ", "), ")");
    if (listed.in_place.has_value()) {
      absl::StrAppend(text, " in ", names.Of(call.inputs[static_cast<size_t>(*listed.in_place)]));
    }
    if (!listed.dropped.empty()) absl::StrAppend(text, "; drops ", names.Of(listed.dropped, " "));
    absl::StrAppend(text, "\n");
  }
  if (!list.unused.empty()) absl::StrAppend(text, "  unused ", names.Of(list.unused, " "), "\n");
}

}  // namespace

std::string FormatLists(const LayerLists& lists) {
  const Names names(lists);
  std::string text = "values\n";
  for (size_t i = 0; i < lists.values.size(); ++i) {
    absl::StrAppend(&text, "  ", names.Of(ValueId(static_cast<int>(i))), " ",
                    FormatType(lists.values[i].type), "\n");
  }
  AppendList("forward", lists.forward, names, &text);
  absl::StrAppend(&text, "  gives ", names.Of(lists.outputs, " "), "; keeps ",
                  names.Of(lists.stash, " "), "\n");
  AppendList("forward alone", lists.forward_alone, names, &text);
  absl::StrAppend(&text, "  gives ", names.Of(lists.outputs, " "), "\n");
  AppendList("evaluation", lists.evaluation, names, &text);
  absl::StrAppend(&text, "  gives ", names.Of(lists.evaluation_outputs, " "), "\n");
  AppendList("backward", lists.backward, names, &text);
  absl::StrAppend(&text, "  gives ", names.Of(lists.input_gradients, " "), "\n");
  AppendList("input gradient", lists.input_gradient, names, &text);
  absl::StrAppend(&text, "  gives ", names.Of(lists.input_gradients, " "), "; keeps ",
                  names.Of(lists.weight_stash, " "), "\n");
  AppendList("weight gradient", lists.weight_gradient, names, &text);
  if (!lists.commit.calls.empty()) AppendList("commit", lists.commit, names, &text);
  return text;
}

}  // namespace stagecoach
