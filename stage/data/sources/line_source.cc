// LineSource: the lines of a job with `write`, cut into tokens by the tokenizer of the job's data. None of
// the data's files is read but that. Sentences to translate are sorted by their number of tokens, in
// windows of SortedLines, so that those of one length are together. Prompts keep their order:
// PoolRowsOf (plan/costs/decoding_memory.h) and the random numbers count on it.
// Determinism: the lines of a group, and what they are padded to, are a function of all lines and
//         of the size of a group, and not of the number of groups in a mini-batch, if groups are of
//         one size.
// Errors: INVALID_ARGUMENT naming write.lines[i], write.tag or write.generate.stops[i]; those of the
//         tokenizer's file.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/progress.h"
#include "plan/costs/decoding_memory.h"
#include "plan/data/json_lines.h"
#include "plan/data/parallel_text.h"
#include "plan/data/text.h"
#include "plan/data/token_inputs.h"
#include "plan/job/sorted_lines.h"
#include "stage/data/open_source.h"
#include "stage/data/opened_text.h"
#include "stage/data/parallel/job_tokenizer.h"
#include "stage/data/sample_order.h"
#include "stage/tokens/token_text.h"

namespace stagecoach {
namespace {

using Ids = std::vector<int32_t>;

std::string FieldOf(size_t line) { return absl::StrCat("write.lines[", line, "]"); }

absl::StatusOr<std::unique_ptr<const Tokenizer>> TokenizerOf(const JobSpec& spec,
                                                             const Network& network,
                                                             const DataRoots& roots) {
  const DataSpec& data = spec.data;
  if (data.kind == ParallelTextData::kKind) {
    return OpenJobTokenizer(spec, network, roots, data.As<ParallelTextData>().tokenizer);
  }
  std::string path;
  if (data.kind == TextData::kKind) {
    path = data.As<TextData>().tokenizer;
  } else if (data.kind == JsonLinesData::kKind) {
    path = data.As<JsonLinesData>().tokenizer;
  } else {
    return FieldError("data", data.kind,
                      "its tokens stand for no text: name a tokenizer with data.text");
  }
  return OpenTokenizer(spec, absl::StrCat("data.", data.kind, ".tokenizer"), path,
                       VocabularyOf(network), roots);
}

// Tag, sentence, end.
absl::StatusOr<Ids> SourceIds(const Tokenizer& tokenizer, const std::string& line, int32_t tag,
                              int64_t context) {
  ASSIGN_OR_RETURN(Ids ids, tokenizer.Encode(line));
  if (tag >= 0) ids.insert(ids.begin(), tag);
  ids.push_back(tokenizer.end());
  if (std::ssize(ids) <= context) return ids;
  return absl::InvalidArgumentError(absl::StrCat(
      "has ", ids.size(), " tokens, and the network reads ", context, "; divide the sentence"));
}

absl::StatusOr<std::vector<Ids>> EncodeSources(const JobSpec& spec, const Network& network,
                                               const Tokenizer& tokenizer) {
  const WriteSpec& write = *spec.write;
  int32_t tag = -1;
  if (!write.tag.empty()) {
    ASSIGN_OR_RETURN(tag, TagId(tokenizer, "write.tag", write.tag));
  }
  const int64_t context = PairLimitsOf(network).source;
  std::vector<Ids> sources(write.lines.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    ASSIGN_OR_RETURN(sources[i],
                     Annotate(SourceIds(tokenizer, write.lines[i], tag, context), FieldOf(i)));
    TickProgress();
  }
  return sources;
}

// Keys and values were counted before the tokens.
absl::Status CheckPrompts(const JobSpec& spec, const Network& network, const Tokenizer* tokenizer) {
  const WriteSpec& write = *spec.write;
  const int64_t vocabulary = VocabularyOf(network);
  for (size_t i = 0; i < write.lines.size(); ++i) {
    ASSIGN_OR_RETURN(const Ids ids,
                     TokenText(tokenizer, vocabulary).Begin(FieldOf(i), write.lines[i]));
    TickProgress();
    if (std::ssize(ids) <= MostPromptTokens(write.lines[i])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(FieldOf(i), ": has ", ids.size(), " tokens and only ", write.lines[i].size(),
                     " bytes; write out the characters that the tokenizer replaces by many"));
  }
  for (size_t i = 0; i < write.generate->stops.size(); ++i) {
    const std::string field = absl::StrCat("write.generate.stops[", i, "]");
    RETURN_IF_ERROR(StopToken(tokenizer, vocabulary, field, write.generate->stops[i]).status());
  }
  return absl::OkStatus();
}

class LineSource final : public BatchSource {
 public:
  LineSource(const JobSpec& spec, const Network& network,
             std::unique_ptr<const Tokenizer> tokenizer, std::vector<Ids> sources)
      : lines_(spec.write->lines),
        tokenizer_(std::move(tokenizer)),
        sources_(std::move(sources)),
        places_(spec, /*train_samples=*/1, std::ssize(lines_)),
        batch_size_(spec.training.batch_size),
        order_(lines_.size()) {
    if (const WireId source = network.InputNamed("source"); source.valid()) {
      extent_ = network.wire(source).type.shape.extent(0);
    }
    std::iota(order_.begin(), order_.end(), 0);
    const auto window = static_cast<size_t>(SortedLines(spec.training));
    for (size_t first = 0; first < sources_.size(); first += window) {
      const auto begin = order_.begin() + static_cast<ptrdiff_t>(first);
      std::stable_sort(
          begin, begin + static_cast<ptrdiff_t>(std::min(window, order_.size() - first)),
          [this](int64_t a, int64_t b) { return Source(a).size() < Source(b).size(); });
    }
    manifest_.train_samples = manifest_.evaluation_samples = std::ssize(lines_);
    std::string digest_text = tokenizer_ == nullptr ? "bytes" : tokenizer_->digest();
    for (const std::string& line : lines_) {
      absl::StrAppend(&digest_text, "\n", line.size(), " ", line);
      manifest_.bytes += std::ssize(line);
    }
    manifest_.sha256 = Sha256Hex(digest_text);
  }

  const DatasetManifest& manifest() const override { return manifest_; }
  absl::StatusOr<HostBatch> Train(uint64_t, MicroBatchId,
                                  std::span<const std::string>) const override {
    return absl::FailedPreconditionError("a job that writes trains nothing");
  }
  absl::StatusOr<HostBatch> Evaluation(uint64_t batch, MicroBatchId micro_batch,
                                       std::span<const std::string> names) const override;
  int64_t evaluation_batches() const override { return 0; }
  std::vector<LineToWrite> Lines(uint64_t batch, MicroBatchId micro_batch) const override {
    std::vector<LineToWrite> lines;
    for (const int64_t i : NumbersOf(batch, micro_batch)) {
      lines.push_back({i, lines_[static_cast<size_t>(i)]});
    }
    return lines;
  }
  const Tokenizer* tokenizer() const override { return tokenizer_.get(); }
  std::string Found() const override { return absl::StrCat(lines_.size(), " lines"); }

 private:
  const Ids& Source(int64_t line) const { return sources_[static_cast<size_t>(line)]; }
  std::span<const int64_t> NumbersOf(uint64_t batch, MicroBatchId micro_batch) const {
    const SampleOrder::Range share = places_.ShareOf(micro_batch);
    const int64_t first = static_cast<int64_t>(batch) * batch_size_ + share.first;
    const int64_t count = std::clamp<int64_t>(std::ssize(order_) - first, 0, share.count);
    if (count == 0) return {};
    return std::span(order_).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  }
  // Of these lines' sources.
  int64_t LengthOf(std::span<const int64_t> numbers) const {
    if (extent_.length == Length::kNone) return extent_.size;
    int64_t length = 1;
    for (const int64_t i : numbers) length = std::max(length, std::ssize(Source(i)));
    return length;
  }

  const std::vector<std::string> lines_;
  const std::unique_ptr<const Tokenizer> tokenizer_;  // null: tokens are bytes
  const std::vector<Ids> sources_;                    // by line; empty: prompts have none
  const SampleOrder places_;
  const int64_t batch_size_;
  std::vector<int64_t> order_;  // lines by place
  Extent extent_;               // of a source
  DatasetManifest manifest_;
};

absl::StatusOr<HostBatch> LineSource::Evaluation(uint64_t batch, MicroBatchId micro_batch,
                                                 std::span<const std::string> names) const {
  const std::span<const int64_t> numbers = NumbersOf(batch, micro_batch);
  HostBatch made{.samples = std::ssize(numbers)};
  const int64_t length = LengthOf(numbers);
  if (extent_.length != Length::kNone) made.lengths.Set(extent_.length, length);
  if (numbers.empty()) return made;
  for (const std::string& name : names) {
    const bool ids = name == "source";
    CHECK(ids || name == "source_length") << "lines give no " << name;
    Ids values;
    for (const int64_t i : numbers) {
      const Ids& source = Source(i);
      if (!ids) {
        values.push_back(static_cast<int32_t>(source.size()));
        continue;
      }
      values.insert(values.end(), source.begin(), source.end());
      values.resize(values.size() + static_cast<size_t>(length) - source.size(), tokenizer_->pad());
    }
    const auto bytes = std::as_bytes(std::span(values));
    made.arrays.emplace_back(bytes.begin(), bytes.end());
  }
  return made;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> OpenLines(const JobSpec& spec, const Network& network,
                                                       const DataRoots& roots);

absl::StatusOr<std::unique_ptr<BatchSource>> OpenLines(const JobSpec& spec, const Network& network,
                                                       const DataRoots& roots) {
  ASSIGN_OR_RETURN(std::unique_ptr<const Tokenizer> tokenizer, TokenizerOf(spec, network, roots));
  std::vector<Ids> sources;
  if (spec.write->translate.has_value()) {
    ASSIGN_OR_RETURN(sources, EncodeSources(spec, network, *tokenizer));
  } else {
    RETURN_IF_ERROR(CheckPrompts(spec, network, tokenizer.get()));
  }
  return std::make_unique<LineSource>(spec, network, std::move(tokenizer), std::move(sources));
}

}  // namespace stagecoach
