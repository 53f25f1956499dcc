// The reader of data.parallel_text (plan/data/parallel_text.h): each file's tokens are made once and
// kept. Opening the data reads them all, for the lengths of the pairs. Parts of it are in
// stage/data/parallel.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "plan/data/parallel_text.h"
#include "stage/data/open_source.h"
#include "stage/data/parallel/bucket_order.h"
#include "stage/data/parallel/job_tokenizer.h"
#include "stage/data/parallel/length_buckets.h"
#include "stage/data/parallel/pair_arrays.h"
#include "stage/data/parallel/pair_set.h"
#include "stage/data/sample_order.h"

namespace stagecoach {
namespace {

constexpr char kPrefix[] = "data.parallel_text";

// The files to train on, or those to evaluate with (prefix "test_").
std::vector<PairSet::From> FilesOf(const std::string& prefix,
                                   const std::vector<std::string>& sources,
                                   const std::vector<std::string>& targets,
                                   const std::vector<std::string>& tags) {
  const auto field = [&prefix](const char* name, size_t i) {
    return absl::StrCat(kPrefix, ".", prefix, name, "[", i, "]");
  };
  std::vector<PairSet::From> files;
  for (size_t i = 0; i < sources.size(); ++i) {
    PairSet::From from{.field = field("sources", i),
                       .path = sources[i],
                       .target_field = field("targets", i),
                       .target_path = targets.empty() ? "" : targets[i],
                       .held_out = !prefix.empty()};
    if (!tags.empty()) {
      from.tag_field = field("tags", i);
      from.tag = tags[i];
    }
    files.push_back(std::move(from));
  }
  return files;
}

// All that was read, and which pairs are for what.
struct Opened {
  PairSet pairs;
  std::vector<PairSet::File> files, test_files;
  std::vector<int32_t> train;           // pairs, file by file
  std::vector<int64_t> train_of_files;  // how many each file has
  std::vector<int32_t> held_out;        // of the files in turns
  // By held-out pair, if they were kept. Numbers count those held out.
  std::unordered_map<int32_t, HeldOutSentence> sentences;
};

// The texts stay where they are.
void NumberSentences(Opened* opened) {
  for (const std::vector<PairSet::File>* files : {&opened->files, &opened->test_files}) {
    for (const PairSet::File& file : *files) {
      auto pair = static_cast<int32_t>(file.first + file.count - std::ssize(file.texts));
      for (const PairSet::Text& text : file.texts) {
        opened->sentences[pair++] = {.number = 0, .source = text.source, .target = text.target};
      }
    }
  }
  int64_t number = 0;
  for (const int32_t pair : opened->held_out) {
    const auto found = opened->sentences.find(pair);
    if (found != opened->sentences.end()) found->second.number = number++;
  }
}

void AppendRange(int64_t first, int64_t count, std::vector<int32_t>* pairs) {
  const size_t before = pairs->size();
  pairs->resize(before + static_cast<size_t>(count));
  std::iota(pairs->begin() + static_cast<int64_t>(before), pairs->end(),
            static_cast<int32_t>(first));
}

// One of each file, then another of each, so that the first mini-batches have all languages.
std::vector<int32_t> InTurns(const std::vector<std::vector<int32_t>>& of_files) {
  std::vector<int32_t> all;
  size_t longest = 0;
  for (const std::vector<int32_t>& pairs : of_files) longest = std::max(longest, pairs.size());
  for (size_t i = 0; i < longest; ++i) {
    for (const std::vector<int32_t>& pairs : of_files) {
      if (i < pairs.size()) all.push_back(pairs[i]);
    }
  }
  return all;
}

absl::Status Split(const JobSpec& spec, Opened* opened) {
  const bool tests = !opened->test_files.empty();
  std::vector<std::vector<int32_t>> held_out;
  for (const PairSet::File& file : opened->files) {
    const int64_t train = file.count - (tests ? 0 : file.held_out);
    if (train == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          file.where, ": has no pair to train on: of ", file.lines, " lines ", file.empty,
          " are empty, ", file.too_long, " are longer than the network's contexts",
          tests ? "" : absl::StrCat(", ", file.held_out, " are held out"),
          "; give more lines or larger contexts"));
    }
    AppendRange(file.first, train, &opened->train);
    opened->train_of_files.push_back(train);
    if (!tests) AppendRange(file.first + train, file.held_out, &held_out.emplace_back());
  }
  for (const PairSet::File& file : opened->test_files) {
    AppendRange(file.first, file.count, &held_out.emplace_back());
  }
  opened->held_out = InTurns(held_out);
  if (!spec.evaluation.given() || !opened->held_out.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      kPrefix,
      ": no held-out pair fits the network's contexts; give larger contexts, other "
      "test_sources, or no evaluation (evaluation.every_steps, evaluation.every_epochs)"));
}

class ParallelTextSource final : public BatchSource {
 public:
  ParallelTextSource(const JobSpec& spec, const Network& network,
                     std::unique_ptr<const Tokenizer> tokenizer, Opened opened,
                     DatasetManifest manifest, std::string digest_text)
      : tokenizer_(std::move(tokenizer)),
        opened_(std::move(opened)),
        places_(spec, std::ssize(opened_.train), std::ssize(opened_.held_out)),
        buckets_(LengthsOf(opened_.train), spec.data.As<ParallelTextData>().buckets),
        order_(OrderParts(spec)),
        arrays_(network, *tokenizer_),
        manifest_(std::move(manifest)) {
    manifest_.train_samples = std::ssize(opened_.train);
    manifest_.evaluation_samples = std::ssize(opened_.held_out);
    // Powers may round otherwise on another machine: then it must not train along.
    absl::StrAppend(&digest_text, "shares ", absl::StrJoin(order_.shares(), " "), "\nbuckets ",
                    buckets_.count(), "\n");
    manifest_.sha256 = Sha256Hex(digest_text);
    if (spec.evaluation.translate.has_value()) NumberSentences(&opened_);
    SortHeldOut(spec, network);
  }

  const DatasetManifest& manifest() const override { return manifest_; }

  absl::StatusOr<HostBatch> Train(uint64_t step, MicroBatchId micro_batch,
                                  std::span<const std::string> names) const override {
    const BucketOrder::MiniBatch batch = order_.Train(step);
    const SampleOrder::Range share = places_.ShareOf(micro_batch);
    std::vector<int32_t> samples;
    for (int64_t i = share.first; i < share.first + share.count; ++i) {
      samples.push_back(TrainPair(batch.samples[static_cast<size_t>(i)]));
    }
    return arrays_.Make(opened_.pairs, samples, buckets_.lengths(batch.bucket), names);
  }

  absl::StatusOr<HostBatch> Evaluation(uint64_t batch, MicroBatchId micro_batch,
                                       std::span<const std::string> names) const override {
    return arrays_.Make(opened_.pairs, HeldOut(batch, micro_batch), held_out_lengths_[batch],
                        names);
  }

  std::vector<HeldOutSentence> Sentences(uint64_t batch, MicroBatchId micro_batch) const override {
    std::vector<HeldOutSentence> sentences;
    for (const int32_t pair : HeldOut(batch, micro_batch)) {
      const auto found = opened_.sentences.find(pair);
      CHECK(found != opened_.sentences.end()) << "the text of pair " << pair << " was not kept";
      sentences.push_back(found->second);
    }
    return sentences;
  }
  const Tokenizer* tokenizer() const override { return tokenizer_.get(); }

  int64_t evaluation_batches() const override { return places_.evaluation_batches(); }

  std::string Found() const override {
    const bool whole = std::all_of(opened_.files.begin(), opened_.files.end(),
                                   [](const PairSet::File& file) { return file.whole; });
    return absl::StrCat(whole ? "" : "at the beginning of the files: ", manifest_.train_samples,
                        " pairs, ", buckets_.count(), " buckets, ",
                        std::lround(100 * PaddingShare()), " % padding, ",
                        manifest_.evaluation_samples, " held out");
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes;
    int64_t empty = 0, trained = 0, held_out = 0, lines = 0;
    const auto add = [&](const std::vector<PairSet::File>& files, bool test) {
      for (const PairSet::File& file : files) {
        const int64_t of_test = test                         ? file.too_long
                                : opened_.test_files.empty() ? file.held_out_too_long
                                                             : 0;
        empty += file.empty;
        lines += file.lines;
        held_out += of_test;
        trained += file.too_long - of_test;
      }
    };
    add(opened_.files, false);
    add(opened_.test_files, true);
    if (trained + held_out > 0) {
      notes.push_back(absl::StrCat(kPrefix, ": of ", lines, " pairs ", trained, " to train on and ",
                                   held_out,
                                   " to evaluate with are longer than the network's contexts and "
                                   "are left out"));
    }
    if (empty > 0) {
      notes.push_back(absl::StrCat(kPrefix, ": of ", lines, " pairs ", empty,
                                   " have no words on both sides and are left out"));
    }
    return notes;
  }

 private:
  std::span<const int32_t> HeldOut(uint64_t batch, MicroBatchId micro_batch) const {
    const SampleOrder::Range range = places_.Evaluation(batch, micro_batch);
    if (range.count == 0) return {};
    return std::span<const int32_t>(opened_.held_out)
        .subspan(static_cast<size_t>(range.first), static_cast<size_t>(range.count));
  }
  int32_t TrainPair(int32_t sample) const { return opened_.train[static_cast<size_t>(sample)]; }
  const PairLengths& LengthsOf(int32_t pair) const {
    return opened_.pairs.lengths()[static_cast<size_t>(pair)];
  }
  std::vector<PairLengths> LengthsOf(std::span<const int32_t> pairs) const {
    std::vector<PairLengths> lengths;
    for (const int32_t pair : pairs) lengths.push_back(LengthsOf(pair));
    return lengths;
  }

  BucketOrder::Parts OrderParts(const JobSpec& spec) const {
    BucketOrder::Parts parts{.seed = spec.seed,
                             .batch_size = spec.training.batch_size,
                             .sampling = spec.data.As<ParallelTextData>().sampling,
                             .files = opened_.train_of_files};
    for (const int32_t pair : opened_.train) {
      parts.buckets.push_back(static_cast<uint8_t>(buckets_.BucketOf(LengthsOf(pair))));
    }
    return parts;
  }

  // Those that an evaluation takes, by length; the lengths of each mini-batch are a bucket's, or
  // the network's. Those that are translated come first, so that these are not the shortest.
  void SortHeldOut(const JobSpec& spec, const Network& network) {
    const int64_t size = spec.training.batch_size;
    const int64_t taken = std::min(std::ssize(opened_.held_out), evaluation_batches() * size);
    const auto& translate = spec.evaluation.translate;
    const int64_t first = translate.has_value() ? std::min(taken, translate->batches * size) : 0;
    const auto begin = opened_.held_out.begin();
    const auto sort = [&](int64_t from, int64_t to) {
      std::stable_sort(begin + from, begin + to, [this](int32_t a, int32_t b) {
        return LengthsOf(a).longest() < LengthsOf(b).longest();
      });
    };
    sort(0, first);
    sort(first, taken);
    const PairLimits limits = PairLimitsOf(network);
    for (int64_t first = 0; first < taken; first += size) {
      PairLengths lengths;
      for (int64_t i = first; i < std::min(first + size, taken); ++i) {
        lengths = LargestOf(lengths, LengthsOf(opened_.held_out[static_cast<size_t>(i)]));
      }
      held_out_lengths_.push_back(buckets_.RoundedUp(lengths).value_or(
          PairLengths{static_cast<int32_t>(limits.source), static_cast<int32_t>(limits.target)}));
    }
  }

  // Of the arrays of the first epoch.
  double PaddingShare() const {
    PaddingCount all;
    for (int64_t step = 0; step < order_.epoch_batches(); ++step) {
      const BucketOrder::MiniBatch batch = order_.Train(static_cast<uint64_t>(step));
      std::vector<int32_t> pairs;
      for (const int32_t sample : batch.samples) pairs.push_back(TrainPair(sample));
      const PaddingCount count =
          arrays_.PaddingOf(opened_.pairs, pairs, buckets_.lengths(batch.bucket));
      all.positions += count.positions;
      all.padded += count.padded;
    }
    return static_cast<double>(all.padded) / static_cast<double>(all.positions);
  }

  const std::unique_ptr<const Tokenizer> tokenizer_;
  Opened opened_;
  const SampleOrder places_;  // of a mini-batch's samples in micro-batches
  const LengthBuckets buckets_;
  const BucketOrder order_;
  const PairArrays arrays_;
  std::vector<PairLengths> held_out_lengths_;  // of each mini-batch
  DatasetManifest manifest_;
};

bool Reads(std::span<const std::string> reads, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [reads](const char* name) {
    return std::find(reads.begin(), reads.end(), name) != reads.end();
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> ParallelTextDataSource(
    const JobSpec& spec, const Network& network, std::span<const std::string> reads,
    const DataRoots& roots, SourceLook look) {
  const auto data = spec.data.As<ParallelTextData>();
  ASSIGN_OR_RETURN(std::unique_ptr<const Tokenizer> tokenizer,
                   OpenJobTokenizer(spec, network, roots, data.tokenizer));
  PairSet::Options options{
      .tokenizer = tokenizer.get(),
      .limits = PairLimitsOf(network),
      .keep_sources = Reads(reads, {"source"}),
      .keep_targets = Reads(reads, {"tokens", "targets"}),
      .test_files = !data.test_sources.empty(),
      .keep_texts = spec.evaluation.translate.has_value() && Reads(reads, {"targets"})};
  if (look == SourceLook::kSurvey) options.survey_bytes = kMostSurveyedBytes;
  Opened opened{.pairs = PairSet(options)};
  DatasetManifest manifest;
  std::string digest_text = absl::StrCat(kPrefix, ".tokenizer ", tokenizer->digest(), "\n");
  const auto read = [&](const std::vector<PairSet::From>& all,
                        std::vector<PairSet::File>* files) -> absl::Status {
    for (const PairSet::From& from : all) {
      ASSIGN_OR_RETURN(PairSet::File file, opened.pairs.Read(roots, from));
      manifest.bytes += file.stored_bytes;
      absl::StrAppend(&digest_text, file.digest, "tag ", from.tag, "\n");
      files->push_back(std::move(file));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(read(FilesOf("", data.sources, data.targets, data.tags), &opened.files));
  RETURN_IF_ERROR(read(FilesOf("test_", data.test_sources, data.test_targets, data.test_tags),
                       &opened.test_files));
  RETURN_IF_ERROR(Split(spec, &opened));
  return std::make_unique<ParallelTextSource>(spec, network, std::move(tokenizer),
                                              std::move(opened), std::move(manifest),
                                              std::move(digest_text));
}

}  // namespace stagecoach
