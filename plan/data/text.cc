#include "plan/data/text.h"

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "network/passes/later_rows.h"
#include "plan/data/text_file.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

class Text final : public FieldKindOf<DataKind, TextData> {
 public:
  std::vector<DataInput> Inputs() const override {
    return {{.name = "tokens", .ids = true, .extents = {"context"}},
            {.name = "targets", .ids = true, .extents = {"context"}}};
  }

  std::vector<std::string> FileFields() const override { return {"path"}; }

  absl::Status CheckInputs(const DataSpec&, const Network& network) const override {
    const WireId tokens = network.InputNamed("tokens"), targets = network.InputNamed("targets");
    if (!tokens.valid()) {
      return FieldError("data.text", "gives tokens and targets",
                        "the network does not read tokens: give data that it reads");
    }
    if (targets.valid() && network.wire(tokens).type != network.wire(targets).type) {
      return FieldError(
          "data.text", "gives as many targets as tokens",
          absl::StrCat("the network reads tokens ", FormatType(network.wire(tokens).type),
                       " and targets ", FormatType(network.wire(targets).type)));
    }
    const std::string reader = ReaderOfLaterRows(network);
    if (reader.empty()) return absl::OkStatus();
    return FieldError("data.text", "gives the token behind each token as its target",
                      absl::StrCat("the network reads that token too (", reader,
                                   "), so it would learn to copy it: take a layer that looks back "
                                   "only, as attention with its causal mask"));
  }

  absl::Status CheckFile(const JobSpec& spec, const Network& network, const DataFile&,
                         std::string_view head, int64_t bytes) const override {
    RETURN_IF_ERROR(CheckIsText(spec.data.As<TextData>(), head));
    const WireId tokens = network.InputNamed("tokens");
    return CheckTextLength(spec, network.wire(tokens).type.shape.elements(), bytes);
  }
};

}  // namespace

const DataKind* TextDataKind() {
  static const auto* const kind = new Text;
  return kind;
}

}  // namespace stagecoach
