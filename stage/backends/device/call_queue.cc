#include "stage/backends/device/call_queue.h"

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"

namespace stagecoach {

CallQueue::~CallQueue() {
  CHECK(queued_.empty()) << QueuedText() << " were never launched";
  SayCounts();
}

Kernel CallQueue::Wrap(Kernel kernel, std::string operation, bool draws) {
  auto prepared = std::make_shared<Prepared>(
      Prepared{.kernel = std::move(kernel), .operation = std::move(operation), .draws = draws});
  return [this, prepared = std::move(prepared)](const KernelContext& context,
                                                const KernelArguments& arguments) {
    Call(prepared, context, arguments);
  };
}

void CallQueue::Call(const std::shared_ptr<Prepared>& prepared, const KernelContext& context,
                     const KernelArguments& arguments) {
  if (open_ == 0 || prepared->draws) {
    Settle();
    prepared->kernel(context, arguments);
    return;
  }
  Form* const form = FindForm(prepared.get(), context, arguments);
  if (form->generation != generation_) return LookAt(*prepared, form, context, arguments);
  if (!form->queues) {
    Settle();
    prepared->kernel(context, arguments);
    return;
  }
  signature_.push_back(form->id);
  queued_.push_back({prepared, form, context.run, context.layer, signature_.size()});
  signature_.insert(signature_.end(), addresses_.begin(), addresses_.end());
}

CallQueue::Form* CallQueue::FindForm(Prepared* prepared, const KernelContext& context,
                                     const KernelArguments& arguments) {
  CallForm::Describe(context.run, arguments, &words_, &addresses_);
  for (const std::unique_ptr<Form>& form : prepared->forms) {
    if (form->operands.words() == words_) return form.get();
  }
  prepared->forms.push_back(std::make_unique<Form>(words_, arguments));
  prepared->forms.back()->id = next_form_++;
  return prepared->forms.back().get();
}

// A call that was refused something has shown nothing.
void CallQueue::LookAt(const Prepared& prepared, Form* form, const KernelContext& context,
                       const KernelArguments& arguments) {
  Settle();
  takes_memory_ = false;
  prepared.kernel(context, arguments);
  if (!parts_.fault->ok()) return;
  form->generation = generation_;
  form->queues = !takes_memory_;
}

void CallQueue::TakesMemory() {
  CHECK(!running_) << "a call of " << QueuedText() << " takes memory, and did not at first";
  takes_memory_ = true;
}

void CallQueue::EndCalls() {
  CHECK_GT(open_, 0) << "no list was begun";
  if (--open_ == 0) Settle();
}

void CallQueue::Settle() {
  if (running_ || queued_.empty()) return;
  running_ = true;
  parts_.make_current();
  LaunchQueued();
  queued_.clear();
  signature_.clear();
  running_ = false;
}

// After a fault calls may leave out what they would launch, so a graph would be another one.
void CallQueue::LaunchQueued() {
  if (!parts_.fault->ok() || queued_.size() < kFewestCalls) return RunQueued();
  GraphCache::Entry* const entry = cache_.Find(signature_);
  bool launched = false;
  if (entry == nullptr) {
    cache_.Add(signature_);
  } else if (!entry->refused) {
    launched = (entry->graph != nullptr || Capture(entry)) && Replay(entry);
  }
  if (launched) {
    ++counts_.replayed;
    parts_.launched(static_cast<int>(queued_.size()));
    return;
  }
  ++counts_.one_by_one;
  RunQueued();
}

void CallQueue::RunQueued() {
  for (const Queued& call : queued_) {
    call.form->operands.Run(
        call.prepared->kernel, {call.run, call.layer},
        std::span(signature_).subspan(call.first_address, call.form->operands.operands()));
  }
}

// What fails while launches are only written down has not failed: it is left to the calls when they
// run.
bool CallQueue::Capture(GraphCache::Entry* entry) {
  parts_.fault->BeginTrial();
  int code = parts_.api->BeginCapture(parts_.stream);
  parts_.fault->Note(code, "beginning a capture");
  if (code == device_code::kSuccess) {
    capturing_ = true;
    RunQueued();
    capturing_ = false;
    code = parts_.api->EndCapture(parts_.stream, &entry->graph);
    if (code != device_code::kSuccess) entry->graph = nullptr;
    parts_.fault->Note(code, "ending a capture");
  }
  const std::string why = parts_.fault->EndTrial();
  if (why.empty()) {
    ++counts_.captured;
    return true;
  }
  Refuse(entry, why);
  return false;
}

bool CallQueue::Replay(GraphCache::Entry* entry) {
  parts_.fault->BeginTrial();
  parts_.fault->Note(parts_.api->Launch(entry->graph, parts_.stream), "launching a graph");
  const std::string why = parts_.fault->EndTrial();
  if (!why.empty()) Refuse(entry, why);
  return why.empty();
}

void CallQueue::Refuse(GraphCache::Entry* entry, const std::string& why) {
  cache_.Refuse(entry);
  if (++counts_.refused > 1) return;
  parts_.say(absl::StrCat(
      "CUDA graphs: ", QueuedText(),
      " did not become one launch and go call by call, as will further lists, without a word: ",
      why));
}

std::string CallQueue::QueuedText() const {
  if (queued_.empty()) return "no calls";
  return absl::StrCat(queued_.size(), " calls from ", queued_.front().prepared->operation, " to ",
                      queued_.back().prepared->operation);
}

void CallQueue::ForgetGraphs() {
  CHECK(!running_) << "memory goes back to the card while " << QueuedText() << " are launched";
  Settle();
  parts_.make_current();
  cache_.Clear();
}

void CallQueue::Forget() {
  ForgetGraphs();
  SayCounts();
  counts_ = Counts();
  ++generation_;
}

void CallQueue::SayCounts() {
  if (counts_.replayed + counts_.one_by_one == 0) return;
  parts_.say(absl::StrCat("CUDA graphs: ", counts_.captured, " captured, launched for ",
                          counts_.replayed, " lists of calls; ", counts_.one_by_one,
                          " lists call by call, ", counts_.refused, " refused"));
}

}  // namespace stagecoach
