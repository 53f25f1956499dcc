#include "stage/data/sequence_source.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/progress.h"
#include "plan/data/token_inputs.h"
#include "plan/job/data_kinds.h"
#include "stage/data/formats/joined_tokens.h"

namespace stagecoach {

SequenceSource::SequenceSource(const JobSpec& spec, SequenceData data)
    : data_(std::move(data)),
      order_(spec, data_.split.train_sequences, data_.split.evaluation_sequences) {
  manifest_ = {.bytes = data_.bytes,
               .sha256 = data_.sha256,
               .train_samples = data_.split.train_sequences,
               .evaluation_samples = data_.split.evaluation_sequences};
}

absl::StatusOr<TokenBatch> SequenceSource::TrainTokens(uint64_t step,
                                                       MicroBatchId micro_batch) const {
  std::vector<int64_t> firsts;
  std::vector<MaskPlace> places;
  for (const SampleOrder::Place& place : order_.TrainPlaces(step, micro_batch)) {
    firsts.push_back(place.sample * data_.context);
    places.push_back({.sample = static_cast<uint64_t>(place.sample), .epoch = place.epoch});
  }
  return Read(*data_.train, firsts, places);
}

absl::StatusOr<TokenBatch> SequenceSource::EvaluationTokens(uint64_t batch,
                                                            MicroBatchId micro_batch) const {
  const int64_t held_out_from = data_.test != nullptr ? 0 : data_.split.train_tokens;
  const SampleOrder::Range range = order_.Evaluation(batch, micro_batch);
  std::vector<int64_t> firsts;
  std::vector<MaskPlace> places;
  for (int64_t sample = range.first; sample < range.first + range.count; ++sample) {
    firsts.push_back(held_out_from + sample * data_.context);
    places.push_back({.sample = static_cast<uint64_t>(sample)});
  }
  return Read(data_.test != nullptr ? *data_.test : *data_.train, firsts, places);
}

absl::StatusOr<TokenBatch> SequenceSource::Read(const TextTokens& file,
                                                std::span<const int64_t> firsts,
                                                std::span<const MaskPlace> places) const {
  TokenBatch batch{.sequences = std::ssize(firsts)};
  batch.inputs.reserve(static_cast<size_t>(batch.sequences * data_.context));
  batch.targets.reserve(static_cast<size_t>(batch.sequences * data_.context));
  std::vector<int32_t> tokens(static_cast<size_t>(data_.context) + 1);
  for (size_t i = 0; i < firsts.size(); ++i) {
    RETURN_IF_ERROR(file.Read(firsts[i], tokens));
    TickProgress();  // a cold disk is slow, and not stuck
    if (data_.masked.has_value()) {
      data_.masked->Add(std::span(tokens).first(tokens.size() - 1), places[i], &batch.inputs,
                        &batch.targets);
      continue;
    }
    batch.inputs.insert(batch.inputs.end(), tokens.begin(), tokens.end() - 1);
    batch.targets.insert(batch.targets.end(), tokens.begin() + 1, tokens.end());
    if (!data_.document_end.has_value()) continue;
    const std::vector<int32_t> starts = DocumentStarts(
        std::span(tokens).first(static_cast<size_t>(data_.context)), *data_.document_end);
    batch.document_starts.insert(batch.document_starts.end(), starts.begin(), starts.end());
  }
  RETURN_IF_ERROR(file.CheckUnchanged());
  return batch;
}

namespace {

std::shared_ptr<const TextTokens> Joined(const std::vector<OpenedTokens>& files) {
  std::vector<std::shared_ptr<const TextTokens>> parts;
  for (const OpenedTokens& file : files) parts.push_back(file.tokens);
  return std::make_shared<JoinedTokens>(std::move(parts));
}

bool AllWhole(const std::vector<OpenedTokens>& files) {
  return std::all_of(files.begin(), files.end(), [](const auto& file) { return file.whole; });
}

std::string DigestOf(const TokenFiles& files) {
  std::string text = files.digest_facts;
  for (const auto* const list : {&files.train, &files.test}) {
    for (const OpenedTokens& file : *list) {
      absl::StrAppend(&text, list == &files.train ? "file " : "test ", file.sha256, "\n");
    }
  }
  return Sha256Hex(text);
}

std::string FoundTokens(const TokenFiles& files, const TokenSplit& split, int64_t tokens,
                        int64_t vocabulary) {
  int64_t documents = 0, bytes = 0;
  for (const OpenedTokens& file : files.train) {
    documents += file.documents;
    bytes += file.bytes;
  }
  const std::string what =
      absl::StrCat(tokens, " tokens of a vocabulary of ", vocabulary,
                   documents > 0 ? absl::StrCat(", ", documents, " documents") : "");
  if (!AllWhole(files.train)) {
    return absl::StrCat(bytes, " bytes, at the beginning of the files: ", what);
  }
  return absl::StrCat(bytes, " bytes, ", what, ", in ", split.train_sequences, " sequences and ",
                      split.evaluation_sequences, " held out");
}

}  // namespace

absl::StatusOr<std::vector<OpenedTokens>> OpenEach(const std::string& field,
                                                   const std::vector<std::string>& paths,
                                                   OpenTokens open) {
  std::vector<OpenedTokens> files;
  for (size_t i = 0; i < paths.size(); ++i) {
    ASSIGN_OR_RETURN(OpenedTokens file, open(absl::StrCat(field, "[", i, "]"), paths[i]));
    files.push_back(std::move(file));
  }
  return files;
}

absl::StatusOr<std::unique_ptr<BatchSource>> SourceOfFiles(const JobSpec& spec,
                                                           const Network& network,
                                                           TokenFiles files) {
  const int64_t context =
      ContextOf(network) - (files.masked.has_value() ? files.masked->added() : 0);
  SequenceData data{.train = Joined(files.train),
                    .context = context,
                    .document_end = files.document_end,
                    .masked = files.masked,
                    .sha256 = DigestOf(files)};
  for (const auto* const list : {&files.train, &files.test}) {
    for (const OpenedTokens& file : *list) data.bytes += file.bytes;
  }
  std::optional<int64_t> test;
  if (!files.test.empty()) {
    data.test = Joined(files.test);
    test = data.test->tokens();
  }
  const auto counted = [&](const char* field, const std::vector<OpenedTokens>& of, int64_t tokens) {
    return CountedTokens{
        .where = of.size() == 1 ? of.front().where : absl::StrCat(files.prefix, ".", field),
        .tokens = tokens,
        .give = "documents",
        .has_test = test.has_value()};
  };
  // Of a part that a survey saw nothing can be said.
  if (AllWhole(files.train)) {
    RETURN_IF_ERROR(
        CheckTrainTokens(counted("files", files.train, data.train->tokens()), spec, context));
  }
  if (test.has_value() && AllWhole(files.test)) {
    RETURN_IF_ERROR(CheckTestTokens(counted("test", files.test, *test), spec, context));
  }
  data.split = SplitTokens(data.train->tokens(), context, test);
  data.split.train_sequences = std::max<int64_t>(data.split.train_sequences, 1);
  data.found = FoundTokens(files, data.split, data.train->tokens(), VocabularyOf(network));
  return std::make_unique<SequenceSource>(spec, std::move(data));
}

}  // namespace stagecoach
