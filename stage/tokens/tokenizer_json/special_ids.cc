#include "stage/tokens/tokenizer_json/special_ids.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

using Names = std::vector<std::string>;

const Names& UsualBegins() {
  static const auto* const names = new Names{
      "<s>", "<|begin_of_text|>", "<|startoftext|>", "<bos>", "[BOS]", "[CLS]", "<|endoftext|>"};
  return *names;
}
const Names& UsualEnds() {
  static const auto* const names =
      new Names{"</s>",  "<|end_of_text|>", "<|endoftext|>", "<|im_end|>",
                "<eos>", "[EOS]",           "[SEP]",         "<|eot_id|>"};
  return *names;
}
const Names& UsualPads() {
  static const auto* const names =
      new Names{"<pad>", "[PAD]", "<|pad|>", "<|finetune_right_pad_id|>"};
  return *names;
}
const Names& UsualMasks() {
  static const auto* const names = new Names{"[MASK]", "<mask>"};
  return *names;
}

struct Marks {
  Names begin, end;
};

// What a template puts around its text A: the token next to the ends of the text.
absl::Status ReadTemplate(const JsonField& field, Marks* marks) {
  ASSIGN_OR_RETURN(const std::vector<JsonField> items, field.Of("single").Items());
  bool behind = false;
  for (const JsonField& item : items) {
    if (!item.Of("Sequence").missing()) behind = true;
    const JsonField special = item.Of("SpecialToken");
    if (special.missing()) continue;
    ASSIGN_OR_RETURN(std::string name, special.Of("id").Text());
    (behind ? marks->end : marks->begin).push_back(std::move(name));
  }
  return absl::OkStatus();
}

// ["</s>", 2].
absl::Status ReadPair(const JsonField& field, Names* names) {
  if (!field.is_array() || field.value()->size() != 2) {
    return field.Refused("must be an array of a token and its id");
  }
  ASSIGN_OR_RETURN(std::string name, field.At(0).Text());
  names->push_back(std::move(name));
  return absl::OkStatus();
}

absl::Status ReadPostProcessor(const JsonField& field, Marks* marks) {
  if (field.missing()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string type, field.Type());
  if (type == "ByteLevel") return absl::OkStatus();  // only for places in the text
  if (type == "TemplateProcessing") return ReadTemplate(field, marks);
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    RETURN_IF_ERROR(ReadPair(field.Of("cls"), &marks->begin));
    return ReadPair(field.Of("sep"), &marks->end);
  }
  if (type == "Sequence") {
    ASSIGN_OR_RETURN(const std::vector<JsonField> items, field.Of("processors").Items());
    for (const JsonField& item : items) RETURN_IF_ERROR(ReadPostProcessor(item, marks));
    return absl::OkStatus();
  }
  return field.Of("type").Refused(
      "is not supported: post-processors are ByteLevel, TemplateProcessing, RobertaProcessing, "
      "BertProcessing, and a Sequence of them");
}

// A token of the config: a string, or an object with "content".
absl::StatusOr<int32_t> IdOfConfig(const JsonField& field, FindToken find) {
  if (field.missing()) return -1;
  ASSIGN_OR_RETURN(const std::string name,
                   field.is_object() ? field.Of("content").Text() : field.Text());
  const int32_t id = find(name, false);
  if (id >= 0) return id;
  return Annotate(field.Refused("is no token of tokenizer.json; name one of them, or null"),
                  "tokenizer_config.json");
}

absl::StatusOr<int32_t> Choose(const JsonField& of_config, const Names& of_file, const Names& usual,
                               FindToken find) {
  if (of_config.value() != nullptr) return IdOfConfig(of_config, find);
  for (const Names* const names : {&of_file, &usual}) {
    for (const std::string& name : *names) {
      if (const int32_t id = find(name, names == &usual); id >= 0) return id;
    }
  }
  return -1;
}

// Of two fields with one meaning the first that names a token, or else says that there is none.
JsonField FirstOf(const JsonField& config, const char* name, const char* other) {
  const JsonField field = config.Of(name), second = config.Of(other);
  return field.missing() && second.value() != nullptr ? second : field;
}

}  // namespace

absl::StatusOr<SpecialIds> FindSpecialIds(const JsonField& tokenizer, const JsonField& config,
                                          FindToken find) {
  Marks marks;
  RETURN_IF_ERROR(ReadPostProcessor(tokenizer.Of("post_processor"), &marks));
  Names pads;
  if (const JsonField pad = tokenizer.Of("padding").Of("pad_token"); !pad.missing()) {
    ASSIGN_OR_RETURN(std::string name, pad.Text());
    pads.push_back(std::move(name));
  }
  SpecialIds ids;
  ASSIGN_OR_RETURN(ids.begin, Choose(FirstOf(config, "bos_token", "cls_token"), marks.begin,
                                     UsualBegins(), find));
  ASSIGN_OR_RETURN(ids.end,
                   Choose(FirstOf(config, "eos_token", "sep_token"), marks.end, UsualEnds(), find));
  ASSIGN_OR_RETURN(ids.pad, Choose(config.Of("pad_token"), pads, UsualPads(), find));
  ASSIGN_OR_RETURN(ids.mask, Choose(config.Of("mask_token"), {}, UsualMasks(), find));
  ids.begins_texts =
      ids.begin >= 0 && !marks.begin.empty() && find(marks.begin.back(), false) == ids.begin;
  // This class makes a post-processor of its own.
  const JsonField adds = config.Of("add_bos_token"), type = config.Of("tokenizer_class");
  if (!adds.missing() && type.is_text() &&
      type.value()->get<std::string>().starts_with("LlamaTokenizer")) {
    ASSIGN_OR_RETURN(const bool begins, adds.Flag(false));
    ids.begins_texts = begins && ids.begin >= 0;
  }
  return ids;
}

}  // namespace stagecoach
