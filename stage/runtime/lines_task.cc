// Texts of a job with `write`: translations of its lines, or continuations. A report has what was written
// since the one before.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "decoding/text_group.h"
#include "plan/costs/decoding_memory.h"
#include "plan/data/token_inputs.h"
#include "stage/decoding/translation_search.h"
#include "stage/runtime/loaded_cells.h"
#include "stage/runtime/text_task.h"
#include "stage/tokens/token_text.h"

namespace stagecoach {
namespace {

class TranslateLines final : public TextTask {
 public:
  TranslateLines(const LoadedCells& loaded, int64_t pool_rows)
      : data_(*loaded.data),
        micro_batches_(static_cast<int>(loaded.command.spec.training.micro_batches)),
        groups_(SearchWith(*loaded.data->tokenizer(),
                           TranslationOf(*loaded.command.spec.write->translate, loaded.network())),
                pool_rows) {}

  absl::StatusOr<std::vector<TokenSearch*>> Begin(uint64_t batch) override {
    std::vector<std::vector<int64_t>> numbers(static_cast<size_t>(micro_batches_));
    for (int i = 0; i < micro_batches_; ++i) {
      for (const LineToWrite& line : data_.Lines(batch, MicroBatchId(i))) {
        numbers[static_cast<size_t>(i)].push_back(line.number);
      }
    }
    return groups_.Begin(std::move(numbers));
  }

  StepChoice choice() const override { return groups_.choice(); }

  absl::Status Report(StepReport* report) override {
    report->write_over = groups_.over();
    for (const TranslationGroup::Translation& one : groups_.TakeDone()) {
      WrittenPiece piece{.line = one.number,
                         .done = true,
                         .tokens = std::ssize(one.best.tokens),
                         .score = one.best.score,
                         .ended = one.best.ended};
      ASSIGN_OR_RETURN(piece.text, data_.tokenizer()->Decode(one.best.tokens));
      report->written.push_back(std::move(piece));
    }
    return absl::OkStatus();
  }

 private:
  const BatchSource& data_;
  const int micro_batches_;
  TranslationGroups groups_;
};

class ContinueLines final : public TextTask {
 public:
  ContinueLines(const LoadedCells& loaded, std::vector<int32_t> stops, int64_t pool_rows)
      : data_(*loaded.data),
        micro_batches_(static_cast<int>(loaded.command.spec.training.micro_batches)),
        vocabulary_(loaded.network().classes()),
        generate_(*loaded.command.spec.write->generate),
        options_{.stops = std::move(stops),
                 .most_tokens = generate_.tokens,
                 .context = ContextOf(loaded.network()),
                 .sample = generate_.temperature > 0,
                 .seed = loaded.command.spec.seed},
        pool_(static_cast<int32_t>(pool_rows)) {}

  absl::StatusOr<std::vector<TokenSearch*>> Begin(uint64_t batch) override {
    groups_.clear();
    std::vector<TokenSearch*> searches;
    for (int i = 0; i < micro_batches_; ++i) {
      ASSIGN_OR_RETURN(Group group, BeginGroup(data_.Lines(batch, MicroBatchId(i))));
      groups_.push_back(std::move(group));
      searches.push_back(groups_.back().search.get());
    }
    return searches;
  }

  StepChoice choice() const override {
    return {.options = {.sample = options_.sample,
                        .temperature = generate_.temperature,
                        .top_k = generate_.top_k,
                        .top_p = generate_.top_p},
            .forbidden = {}};
  }

  absl::Status Report(StepReport* report) override {
    report->write_over = true;
    for (Group& group : groups_) {
      report->write_over = report->write_over && group.search->over();
      ReportGroup(group, report);
    }
    return absl::OkStatus();
  }

 private:
  struct Line {
    int64_t number = 0;
    TokenText text;
    int64_t told = 0;  // bytes
    int64_t tokens = 0;
    bool done = false;
  };
  struct Group {
    std::vector<Line> lines;
    std::unique_ptr<TextGroup> search;
  };

  absl::StatusOr<Group> BeginGroup(const std::vector<LineToWrite>& lines) {
    Group group;
    std::vector<std::vector<int32_t>> prompts;
    for (const LineToWrite& line : lines) {
      group.lines.push_back({.number = line.number, .text = {data_.tokenizer(), vocabulary_}});
      ASSIGN_OR_RETURN(
          prompts.emplace_back(),
          group.lines.back().text.Begin(absl::StrCat("write.lines[", line.number, "]"), line.text));
    }
    TextOptions options = options_;
    if (!lines.empty()) options.first_text = lines.front().number;  // lines are in their order
    group.search = std::make_unique<TextGroup>(options, prompts, &pool_);
    return group;
  }

  static void ReportGroup(Group& group, StepReport* report) {
    std::vector<std::string> more(group.lines.size());
    for (const TextGroup::Token& one : group.search->TakeNew()) {
      Line& line = group.lines[static_cast<size_t>(one.text)];
      ++line.tokens;
      more[static_cast<size_t>(one.text)] += line.text.Add(one.token);
    }
    for (size_t i = 0; i < more.size(); ++i) {
      TickProgress();
      Line& line = group.lines[i];
      const bool ends = !line.done && !group.search->live(static_cast<int>(i));
      if (ends) more[i] += line.text.Finish();
      if (more[i].empty() && !ends) continue;
      line.done = line.done || ends;
      const auto bytes = std::ssize(more[i]);
      report->written.push_back({.line = line.number,
                                 .offset = line.told,
                                 .text = std::move(more[i]),
                                 .done = line.done,
                                 .tokens = line.tokens,
                                 .ended = group.search->stopped(static_cast<int>(i))});
      line.told += bytes;
    }
  }

  const BatchSource& data_;
  const int micro_batches_;
  const int64_t vocabulary_;
  const GenerateSpec generate_;
  const TextOptions options_;
  RowPool pool_;
  std::vector<Group> groups_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextTask>> WriteLines(const LoadedCells& loaded, int64_t pool_rows) {
  const WriteSpec& write = *loaded.command.spec.write;
  if (write.translate.has_value()) return std::make_unique<TranslateLines>(loaded, pool_rows);
  std::vector<int32_t> stops;
  for (size_t i = 0; i < write.generate->stops.size(); ++i) {
    const std::string field = absl::StrCat("write.generate.stops[", i, "]");
    ASSIGN_OR_RETURN(stops.emplace_back(),
                     StopToken(loaded.data->tokenizer(), loaded.network().classes(), field,
                               write.generate->stops[i]));
  }
  if (const int32_t end = EndOfText(loaded.data->tokenizer()); end >= 0) stops.push_back(end);
  return std::make_unique<ContinueLines>(loaded, std::move(stops), pool_rows);
}

}  // namespace stagecoach
