// Progress: a running job as a line of text, for a log or redrawn on a terminal.
// A log gets one line a step with fixed keys, which people grep; new keys are only appended:
//   step=120/1000 examples=7680 loss=2.3100 lr=3.0e-04 grad_norm=0.870 step_s=0.140 tokens_s=117029
//   bubble=0.310 ideal=0.273 mem_peak_gib=0.07 skipped=0 nonfinite=0 eta=2m03s     (one line)
// The network's other measures follow, as accuracy=0.9121. A job on pictures has pictures_s in the
// place of tokens_s. A job that writes texts trains nothing:
//   step=2/3 lines=64/70 step_s=0.140 mem_peak_gib=0.07 eta=2m03s
// Threads: thread-compatible.
#ifndef STAGECOACH_SERVICES_CLI_OUTPUT_PROGRESS_H_
#define STAGECOACH_SERVICES_CLI_OUTPUT_PROGRESS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

// "0.9121"; of a score "35.30".
std::string MeasureText(const v1::Measure& measure);
// " accuracy=0.9121 top_5=0.9950"; empty without any.
std::string MeasuresText(const google::protobuf::RepeatedPtrField<v1::Measure>& measures);

// The text of a load, at most `columns` wide: "[=====>      ] stage 0 (a): encodes de.txt: 41 %".
// Without a percentage, or without room, there is no bar.
std::string LoadingBar(const std::string& text, int columns);

// The state that a line needs beyond the current record.
class ProgressState {
 public:
  // Steps and spec of the followed job.
  ProgressState(int64_t steps, v1::JobSpec spec) : steps_(steps), spec_(std::move(spec)) {}

  void OnStep(uint64_t step, const v1::StepRecord& record);
  // Texts were written; a step is a mini-batch of lines. True: steps are done since the last call.
  bool OnWritten(uint64_t step, double unix_seconds);
  void OnStages(const v1::Job& job);  // takes the peak memory

  uint64_t step() const { return step_; }
  int64_t steps() const { return steps_; }
  // Seconds to the end by a moving average of the last steps; negative while unknown.
  double EtaSeconds() const;

  std::string ConsoleLine() const;
  // "[=====> ] 60% 120/200 loss 2.310 ETA 2m03s 117k tokens/s bubble 31.0% (ideal 27.3%)", at most
  // `columns` wide. If that is too narrow, the other parts go first, then the bar's width, then the
  // counts. Loss and time left stay.
  std::string Bar(int columns) const;

 private:
  std::string SharesText() const;  // the network's other measures, for the bar
  std::string WritingLine() const;

  int64_t steps_;
  const v1::JobSpec spec_;
  uint64_t step_ = 0;
  double written_unix_seconds_ = 0;  // of the last step done, or of the first text; 0: none yet
  v1::StepRecord last_;
  double average_step_seconds_ = 0;  // 0: no step yet
  int64_t memory_peak_bytes_ = 0;    // of the largest stage
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_OUTPUT_PROGRESS_H_
