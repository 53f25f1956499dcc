#include "plan/data/parallel_text.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/files/gzip.h"
#include "base/utf8.h"
#include "network/passes/later_rows.h"
#include "plan/data/text_file.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

constexpr char kPrefix[] = "data.parallel_text";

std::string FieldOf(const char* name) { return absl::StrCat(kPrefix, ".", name); }

// A list beside the files `of`: an entry for each of them, or none.
absl::Status CheckCount(const char* name, const std::vector<std::string>& list, const char* of,
                        const std::vector<std::string>& files) {
  if (list.empty() || list.size() == files.size()) return absl::OkStatus();
  return FieldError(FieldOf(name), absl::StrCat(list.size(), " entries"),
                    absl::StrCat("must be as many as ", of, ", ", files.size(), ", or none"));
}

absl::Status CheckLists(const ParallelTextData& data) {
  if (data.sources.empty()) {
    return FieldError(FieldOf("sources"), "[]", "must name the files to train on");
  }
  RETURN_IF_ERROR(CheckCount("targets", data.targets, "sources", data.sources));
  RETURN_IF_ERROR(CheckCount("tags", data.tags, "sources", data.sources));
  RETURN_IF_ERROR(CheckCount("test_targets", data.test_targets, "test_sources", data.test_sources));
  // Such an evaluation would tell what the network makes of sentences without tags.
  if (!data.tags.empty() && !data.test_sources.empty() && data.test_tags.empty()) {
    return FieldError(FieldOf("test_tags"), "missing",
                      "sentences to train on have tags: give those of test_sources too");
  }
  return CheckCount("test_tags", data.test_tags, "test_sources", data.test_sources);
}

// The name of an input's extent is that of its side, or none.
absl::Status CheckName(const Network& network, WireId input, Length side) {
  if (!input.valid()) return absl::OkStatus();
  const Length name = network.wire(input).type.shape.extent(0).length;
  if (name == Length::kNone || name == side) return absl::OkStatus();
  return FieldError(
      kPrefix, absl::StrCat("gives ", network.input(input).name, " of length ", LengthName(side)),
      absl::StrCat("the network reads ", FormatType(network.wire(input).type),
                   ": take a network that reads the former"));
}

absl::Status CheckTypes(const Network& network) {
  const WireId tokens = network.InputNamed("tokens"), targets = network.InputNamed("targets");
  if (!tokens.valid() || !targets.valid()) {
    return FieldError(
        kPrefix, "gives tokens and targets",
        absl::StrCat("the network does not read ", tokens.valid() ? "targets" : "tokens",
                     ": give data that it reads"));
  }
  const ValueType &read = network.wire(tokens).type, &compared = network.wire(targets).type;
  if (read != compared) {
    return FieldError(kPrefix, "gives as many targets as tokens",
                      absl::StrCat("the network reads tokens ", FormatType(read), " and targets ",
                                   FormatType(compared)));
  }
  RETURN_IF_ERROR(CheckName(network, tokens, Length::kTarget));
  return CheckName(network, network.InputNamed("source"), Length::kSource);
}

class ParallelText final : public FieldKindOf<DataKind, ParallelTextData> {
 public:
  std::vector<DataInput> Inputs() const override {
    return {{.name = "source", .ids = true, .extents = {"source context"}},
            {.name = "source_length", .ids = true, .extents = {}},
            {.name = "tokens", .ids = true, .extents = {"target context"}},
            {.name = "targets", .ids = true, .extents = {"target context"}}};
  }

  std::vector<std::string> FileFields() const override {
    return {"tokenizer", "sources", "targets", "test_sources", "test_targets"};
  }

  absl::Status CheckInputs(const DataSpec& data, const Network& network) const override {
    RETURN_IF_ERROR(CheckLists(data.As<ParallelTextData>()));
    RETURN_IF_ERROR(CheckTypes(network));
    if (!network.objective.ignored.has_value()) {
      return FieldError(kPrefix, "pads targets",
                        "the network's objective would count padding: set "
                        "model.objective.cross_entropy.ignore_index to the tokenizer's padding id");
    }
    // An encoder sees its whole sentence; a network without one must not see its own targets.
    if (network.InputNamed("source").valid()) return absl::OkStatus();
    const std::string reader = ReaderOfLaterRows(network);
    if (reader.empty()) return absl::OkStatus();
    return FieldError(kPrefix, "gives the token behind each token as its target",
                      absl::StrCat("the network reads that token too (", reader,
                                   "), so it would learn to copy it: take a layer that looks back "
                                   "only, as attention with its causal mask"));
  }

  absl::Status CheckFile(const JobSpec& spec, const Network&, const DataFile& file,
                         std::string_view head, int64_t) const override {
    const std::string where =
        absl::StrCat(DataFieldPath(spec.data, file), " = \"", ShownName(file.path), "\"");
    if (file.field != "tokenizer") return CheckSentencesHead(where, head);
    return CheckTokenizerHead(where, head);
  }
};

}  // namespace

PairLimits PairLimitsOf(const Network& network) {
  const auto extent = [&network](WireId input) {
    return input.valid() ? network.wire(input).type.shape[0] : std::numeric_limits<int32_t>::max();
  };
  PairLimits limits{extent(network.InputNamed("source")), extent(network.InputNamed("tokens"))};
  const WireId length = network.InputNamed("source_length");
  if (length.valid()) limits.source = std::min(limits.source, network.input(length).classes - 1);
  return limits;
}

absl::Status CheckSentencesHead(const std::string& where, std::string_view head) {
  if (head.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": the file is empty; give a file with a sentence a line"));
  }
  if (LooksLikeGzip(head)) return absl::OkStatus();
  const std::optional<FileKind> kind = PlainlyNotText(head.substr(0, kTextCheckBytes));
  if (!kind.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(where, ": looks like ", kind->name,
                                                 " and not like text; ",
                                                 kind->remedy.empty() ? kGiveText : kind->remedy));
}

const DataKind* ParallelTextDataKind() {
  static const auto* const kind = new ParallelText;
  return kind;
}

}  // namespace stagecoach
