#include "stage/executor/decoding_executor.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "stage/decoding/local_token_model.h"

namespace stagecoach {
namespace {

constexpr size_t kKept = 4;  // place among row types

std::vector<ValueType> Types(const Network& network, const std::vector<WireId>& of) {
  std::vector<ValueType> types;
  for (const WireId id : of) types.push_back(network.wire(id).type);
  return types;
}

// The target's own inputs, and of each sample its number in the step before.
std::vector<ValueType> RowTypes(const DecodingForm& form) {
  std::vector<ValueType> types;
  for (int i = 0; i < static_cast<int>(kKept); ++i) {
    types.push_back(form.target.wire(WireId(i)).type);
  }
  types.push_back({Element::kIds, Leading::kSamples, Shape()});
  return types;
}

}  // namespace

template <typename IsEnd>
int DecodingExecutor::Next(int group, IsEnd ends) const {
  for (int i = 1; i <= work_->groups; ++i) {
    const int next = (group + i) % work_->groups;
    if (!ends(groups_[static_cast<size_t>(next)])) return next;
  }
  return group;
}

DecodingExecutor::DecodingExecutor(const Parts& parts)
    : parts_(parts), row_types_(RowTypes(*parts.form)) {
  const Network &source = parts_.form->source, &target = parts_.form->target;
  const CellWires &of_source = parts_.decoder->source_wires(),
                  &of_target = parts_.decoder->target_wires();
  const auto open = [this](std::optional<BoundaryPort>* port, Link* link, int peer,
                           std::vector<ValueType> outgoing, std::vector<ValueType> incoming) {
    port->emplace(BoundaryPort::Parts{.link = link,
                                      .self = parts_.stage,
                                      .peer = StageId(peer),
                                      .leads_down = parts_.stage.value < peer,
                                      .outgoing = std::move(outgoing),
                                      .incoming = std::move(incoming),
                                      .tied_outgoing = {},
                                      .tied_incoming = {},
                                      .dtype = ComputeDType(parts_.form->target.precision),
                                      .phases = parts_.phases,
                                      .clock = parts_.clock,
                                      .backend = parts_.backend});
  };
  const int above = parts_.stage.value - 1, below = parts_.stage.value + 1;
  if (!of_source.received.empty()) {
    open(&source_up_, parts_.upstream, above, {}, Types(source, of_source.received));
  }
  if (!last_stage() && !of_source.sent.empty()) {
    open(&source_down_, parts_.downstream, below, Types(source, of_source.sent), {});
  }
  if (!of_target.received.empty()) {
    open(&up_, parts_.upstream, above, row_types_, Types(target, of_target.received));
  }
  if (!last_stage() && !of_target.sent.empty()) {
    open(&down_, parts_.downstream, below, Types(target, of_target.sent), row_types_);
  }
}

DecodingExecutor::~DecodingExecutor() = default;

void DecodingExecutor::Begin(const DecodingWork& work) {
  CHECK(!work_.has_value()) << "a pass is under way";
  CHECK_GT(work.groups, 0);
  CHECK(!last_stage() || std::ssize(work.searches) == work.groups) << "a search for each group";
  if (work.goes_on) {
    CHECK(paused_ && std::ssize(groups_) == work.groups) << "no pass has paused";
  } else {
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
      parts_.decoder->Drop(group);
    }
    groups_.clear();
    groups_.resize(static_cast<size_t>(work.groups));
  }
  work_ = work;
  paused_ = asked_all_ = false;
  for (Group& group : groups_) group.rounds_asked = group.rounds = 0;
  const int last = work.groups - 1;  // the first ones are behind it
  group_ = Next(last, [](const Group& group) { return group.over; });
  next_rows_ = Next(last, [](const Group& group) { return group.rows_over; });
  const CellWires& of_source = parts_.decoder->source_wires();
  in_source_ = !work.goes_on && (!of_source.loaded.empty() || !of_source.received.empty());
  if (in_source_) group_ = 0;
  // A stage whose layers are all in front of the first token has no more to do.
  in_target_ = last_stage() || down_.has_value();
}

absl::StatusOr<Progress> DecodingExecutor::Advance(int most) {
  CHECK(work_.has_value()) << "no pass has begun";
  blocked_ = false;
  for (int i = 0; i < most; ++i) {
    ASSIGN_OR_RETURN(bool some, SendWaiting());
    if (in_source_) {
      ASSIGN_OR_RETURN(const bool source, AdvanceSource());
      some = some || source;
    } else if (in_target_) {
      if (last_stage() && !std::exchange(asked_all_, true)) RETURN_IF_ERROR(AskAll());
      ASSIGN_OR_RETURN(const bool sent, SendRows());
      ASSIGN_OR_RETURN(const bool received, ReceiveRows());
      ASSIGN_OR_RETURN(const bool computed, AdvanceTarget());
      some = some || sent || received || computed;
    }
    if (some) {
      TickProgress();
      continue;
    }
    if (Finished()) {
      EndPass();
      return Progress::kFinished;
    }
    RETURN_IF_ERROR(LinkStatus());
    blocked_ = i == 0;
    return blocked_ ? Progress::kBlocked : Progress::kAdvanced;
  }
  return Progress::kAdvanced;
}

bool DecodingExecutor::Finished() const {
  if (in_source_ || to_send_.has_value() || !rows_to_send_.empty()) return false;
  for (const auto* port : {&source_down_, &up_, &down_}) {
    if (port->has_value() && (*port)->waiting()) return false;
  }
  return !in_target_ || std::all_of(groups_.begin(), groups_.end(),
                                    [this](const Group& group) { return Ends(group); });
}

void DecodingExecutor::EndPass() {
  paused_ = in_target_ && std::any_of(groups_.begin(), groups_.end(),
                                      [](const Group& group) { return !group.over; });
  // A stage with nothing but sources has all to go on.
  paused_ = paused_ || (!in_target_ && work_->rounds > 0);
  for (int group = 0; group < work_->groups && !paused_; ++group) parts_.decoder->Drop(group);
  work_.reset();
}

// --- The source, group after group.

absl::StatusOr<std::optional<DecodingExecutor::Message>> DecodingExecutor::SourceInputs() {
  Message inputs{.group = group_, .binding = Binding{-1}, .tensors = {}};
  Tensors received;
  if (source_up_.has_value()) {
    ASSIGN_OR_RETURN(std::optional<BoundaryPort::Arrived> arrived,
                     source_up_->TryReceive(MessageKind::kActivation, work_->fence,
                                            MicroBatchId(group_), Binding{-1}));
    if (!arrived.has_value()) return std::optional<Message>();
    inputs.binding = arrived->binding;
    received = std::move(arrived->tuple);
  }
  const std::vector<WireId>& loaded = parts_.decoder->source_wires().loaded;
  if (!loaded.empty()) {
    parts_.phases->Enter(Phase::kDataWait, MicroBatchId(group_));
    std::vector<std::string> names;
    for (const WireId id : loaded) names.push_back(parts_.form->source.input(id).name);
    ASSIGN_OR_RETURN(const HostBatch batch,
                     parts_.data->Evaluation(work_->batch, MicroBatchId(group_), names));
    if (inputs.binding.samples >= 0 && inputs.binding.samples != batch.samples) {
      return absl::FailedPreconditionError(
          absl::StrCat(inputs.binding.samples, " samples arrived, the data set of stage ",
                       parts_.stage.value, " has ", batch.samples));
    }
    inputs.binding = {batch.samples, batch.lengths};
    for (size_t i = 0; i < loaded.size() && batch.samples > 0; ++i) {
      const auto* const ids = reinterpret_cast<const int32_t*>(batch.arrays[i].data());
      const std::vector<int32_t> values(ids, ids + batch.arrays[i].size() / sizeof(int32_t));
      ASSIGN_OR_RETURN(inputs.tensors.emplace_back(),
                       ToDevice(values, parts_.form->source.wire(loaded[i]).type, inputs.binding));
    }
  }
  for (Tensor& tensor : received) inputs.tensors.push_back(std::move(tensor));
  return std::optional<Message>(std::move(inputs));
}

absl::StatusOr<bool> DecodingExecutor::AdvanceSource() {
  if (!to_send_.has_value()) {
    ASSIGN_OR_RETURN(std::optional<Message> inputs, SourceInputs());
    if (!inputs.has_value()) return false;
    Message sent{.group = group_, .binding = inputs->binding, .tensors = {}};
    parts_.phases->Enter(Phase::kForward, MicroBatchId(group_));
    if (inputs->binding.samples > 0) {
      ASSIGN_OR_RETURN(sent.tensors,
                       parts_.decoder->Begin(group_, std::move(inputs->tensors), inputs->binding));
    } else {
      ASSIGN_OR_RETURN(sent.tensors,
                       EmptyTuple(Types(parts_.form->source, parts_.decoder->source_wires().sent)));
    }
    to_send_ = std::move(sent);
  }
  if (source_down_.has_value()) {
    ASSIGN_OR_RETURN(const bool sent, SendActivations(&*source_down_));
    if (!sent) return false;
  }
  to_send_.reset();
  if (++group_ < work_->groups) return true;
  group_ = 0;
  in_source_ = false;
  return true;
}

absl::StatusOr<bool> DecodingExecutor::SendActivations(BoundaryPort* port) {
  return port->TrySend(MessageKind::kActivation, work_->fence, MicroBatchId(to_send_->group),
                       &to_send_->tensors, to_send_->binding);
}

// Sends messages that wait for a copy or the link. Sources leave before the first activations of rows.
absl::StatusOr<bool> DecodingExecutor::SendWaiting() {
  bool some = false;
  for (auto* port : {&source_down_, &up_, &down_}) {
    if (!port->has_value() || !(*port)->waiting()) continue;
    ASSIGN_OR_RETURN(const bool sent, (*port)->SendWaiting());
    some = some || sent;
  }
  return some;
}

// --- Rows go up, ahead of what is computed.

absl::StatusOr<bool> DecodingExecutor::ReceiveRows() {
  if (last_stage() || RowsEnd(At(next_rows_))) return false;
  ASSIGN_OR_RETURN(
      std::optional<BoundaryPort::Arrived> arrived,
      down_->TryReceive(MessageKind::kRows, work_->fence, MicroBatchId(next_rows_), Binding{-1}));
  if (!arrived.has_value()) return false;
  Message rows{
      .group = next_rows_, .binding = arrived->binding, .tensors = std::move(arrived->tuple)};
  if (up_.has_value()) rows_to_send_.push_back(rows);
  Group& group = At(next_rows_);
  if (group.rows.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat("rows of group ", next_rows_, " came twice"));
  }
  group.rows_over = rows.binding.samples == 0;
  if (!group.rows_over) ++group.rounds_asked;
  group.rows = std::move(rows);
  next_rows_ = Next(next_rows_, [this](const Group& other) { return RowsEnd(other); });
  return true;
}

absl::StatusOr<bool> DecodingExecutor::SendRows() {
  if (!up_.has_value()) return false;
  if (rows_to_send_.empty()) return false;
  Message& first = rows_to_send_.front();
  ASSIGN_OR_RETURN(const bool sent,
                   up_->TrySend(MessageKind::kRows, work_->fence, MicroBatchId(first.group),
                                &first.tensors, first.binding));
  if (sent) rows_to_send_.pop_front();
  return sent;
}

// --- The target, round after round.

absl::StatusOr<bool> DecodingExecutor::AdvanceTarget() {
  if (source_down_.has_value() && source_down_->waiting()) return false;
  if (to_send_.has_value()) {
    ASSIGN_OR_RETURN(const bool sent, SendActivations(&*down_));
    if (sent) to_send_.reset();
    return sent;
  }
  Group& group = At(group_);
  if (Ends(group) || !group.rows.has_value()) return false;
  const int at_hand = group_;
  const auto go_on = [this] {
    group_ = Next(group_, [this](const Group& other) { return Ends(other); });
  };
  if (group.rows->binding.samples == 0) {
    group.over = true;
    group.rows.reset();
    parts_.decoder->Drop(at_hand);
    go_on();
    return true;
  }
  Tensors received;
  if (up_.has_value()) {
    ASSIGN_OR_RETURN(std::optional<BoundaryPort::Arrived> arrived,
                     up_->TryReceive(MessageKind::kActivation, work_->fence, MicroBatchId(at_hand),
                                     group.rows->binding));
    if (!arrived.has_value()) return false;
    received = std::move(arrived->tuple);
  }
  const Message rows = *std::exchange(group.rows, std::nullopt);
  parts_.phases->Enter(Phase::kForward, MicroBatchId(at_hand));
  ASSIGN_OR_RETURN(Tensors made, Compute(rows, std::move(received)));
  ++group.rounds;
  go_on();
  if (last_stage()) {
    RETURN_IF_ERROR(Search(at_hand, made.front()));
    return true;
  }
  to_send_ = Message{.group = at_hand, .binding = rows.binding, .tensors = std::move(made)};
  return true;
}

absl::Status DecodingExecutor::CheckKept(int at, const std::vector<int64_t>& samples) const {
  const int64_t held = groups_[static_cast<size_t>(at)].samples;
  for (const int64_t sample : samples) {
    if (sample >= 0 && (sample < held || !parts_.form->has_source())) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("group ", at, " keeps sample ", sample, " of ", held));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensors> DecodingExecutor::Compute(const Message& rows, Tensors received) {
  Group& group = At(rows.group);
  if (group.samples >= 0 && group.samples != rows.binding.samples) {
    std::vector<int32_t> kept(static_cast<size_t>(rows.binding.samples));
    parts_.backend->CopyToHost(rows.tensors[kKept],
                               std::as_writable_bytes(std::span<int32_t>(kept)));
    RETURN_IF_ERROR(parts_.backend->Synchronize());
    const std::vector<int64_t> samples(kept.begin(), kept.end());
    RETURN_IF_ERROR(CheckKept(rows.group, samples));
    RETURN_IF_ERROR(parts_.decoder->Keep(rows.group, samples));
  }
  group.samples = rows.binding.samples;
  Tensors inputs;
  for (const WireId id : parts_.decoder->target_wires().loaded) {
    inputs.push_back(rows.tensors[static_cast<size_t>(id.value)]);
  }
  for (Tensor& tensor : received) inputs.push_back(std::move(tensor));
  return parts_.decoder->Step(rows.group, std::move(inputs), rows.binding);
}

absl::Status DecodingExecutor::AskAll() {
  for (int i = 0; i < work_->groups; ++i) {
    if (!At(i).over) RETURN_IF_ERROR(AskRows(i));
  }
  return absl::OkStatus();
}

absl::Status DecodingExecutor::Search(int at, const Tensor& logits) {
  Group& group = At(at);
  const RowBatch asked = *std::exchange(group.asked, std::nullopt);
  ASSIGN_OR_RETURN(const CandidatesOfRows candidates,
                   CandidatesOf(logits, asked, work_->choice, *parts_.backend));
  TokenSearch& search = SearchOf(at);
  RETURN_IF_ERROR(search.Take(candidates));
  group.kept = search.Shrink();
  return Pauses(group.rounds) ? absl::OkStatus() : AskRows(at);
}

absl::Status DecodingExecutor::AskRows(int at) {
  Group& group = At(at);
  TokenSearch& search = SearchOf(at);
  const std::optional<std::vector<int64_t>> kept = std::exchange(group.kept, std::nullopt);
  Message rows{.group = at, .binding = Binding{0}, .tensors = {}};
  rows.binding.lengths.Set(Length::kTarget, 1);
  RowBatch batch;
  std::vector<int32_t> numbers;  // of the samples, in the step before
  if (!search.over()) {
    ASSIGN_OR_RETURN(batch, search.Rows());
    rows.binding.samples = batch.samples;
    rows.binding.lengths.Set(Length::kTarget, batch.rows);
    numbers.resize(static_cast<size_t>(batch.samples));
    std::iota(numbers.begin(), numbers.end(), 0);
    if (kept.has_value()) numbers.assign(kept->begin(), kept->end());
  }
  for (const std::vector<int32_t>* ids :
       {&batch.tokens, &batch.positions, &batch.places, &batch.history, &numbers}) {
    ASSIGN_OR_RETURN(Tensor tensor, ToDevice(*ids, row_types_[rows.tensors.size()], rows.binding));
    rows.tensors.push_back(std::move(tensor));
  }
  if (up_.has_value()) rows_to_send_.push_back(rows);
  group.rows = std::move(rows);
  group.asked = std::move(batch);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> DecodingExecutor::ToDevice(const std::vector<int32_t>& ids,
                                                  const ValueType& type,
                                                  const Binding& binding) const {
  const Shape shape = RuntimeShape(type, binding);
  CHECK_EQ(shape.elements(), std::ssize(ids)) << "ids of " << FormatType(type);
  ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(parts_.backend->allocator(), MemoryKind::kActivations,
                                             DType::kI32, shape));
  if (ids.empty()) return tensor;
  parts_.backend->CopyFromHost(std::as_bytes(std::span<const int32_t>(ids)), tensor);
  RETURN_IF_ERROR(parts_.backend->Synchronize());
  return tensor;
}

absl::StatusOr<Tensors> DecodingExecutor::EmptyTuple(const std::vector<ValueType>& types) const {
  Tensors tuple;
  const DType dtype = ComputeDType(parts_.form->target.precision);
  for (const ValueType& type : types) {
    ASSIGN_OR_RETURN(tuple.emplace_back(),
                     MakeTensor(parts_.backend->allocator(), MemoryKind::kActivations,
                                ElementDType(type.element, dtype), RuntimeShape(type, 0)));
  }
  return tuple;
}

absl::Status DecodingExecutor::LinkStatus() const {
  for (const auto* port : {&source_up_, &source_down_, &up_, &down_}) {
    if (port->has_value()) RETURN_IF_ERROR((*port)->status());
  }
  return absl::OkStatus();
}

std::string DecodingExecutor::WaitingFor() const {
  if (!work_.has_value() || !blocked_) return "";
  const Fence& fence = work_->fence;
  for (const auto* port : {&source_down_, &up_, &down_}) {
    if (!port->has_value() || !(*port)->waiting()) continue;
    return (*port)->Waiting((*port)->waiting_kind(), fence, (*port)->waiting_micro_batch());
  }
  if (to_send_.has_value()) {
    const BoundaryPort& port = in_source_ ? *source_down_ : *down_;
    return port.Waiting(MessageKind::kActivation, fence, MicroBatchId(to_send_->group));
  }
  if (in_source_) {
    return source_up_.has_value()
               ? source_up_->Waiting(MessageKind::kActivation, fence, MicroBatchId(group_))
               : "";
  }
  const Group& group = groups_[static_cast<size_t>(group_)];
  if (Ends(group)) {
    return rows_to_send_.empty()
               ? ""
               : up_->Waiting(MessageKind::kRows, fence, MicroBatchId(rows_to_send_.front().group));
  }
  if (!group.rows.has_value() && down_.has_value()) {
    return down_->Waiting(MessageKind::kRows, fence, MicroBatchId(next_rows_));
  }
  return up_.has_value() ? up_->Waiting(MessageKind::kActivation, fence, MicroBatchId(group_)) : "";
}

uint64_t DecodingExecutor::stale_messages() const {
  uint64_t stale = 0;
  for (const auto* port : {&source_up_, &source_down_, &up_, &down_}) {
    if (port->has_value()) stale += (*port)->stale_messages();
  }
  return stale;
}

void DecodingExecutor::Abandon() {
  for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
    parts_.decoder->Drop(group);
  }
  work_.reset();
  groups_.clear();
  paused_ = false;
  rows_to_send_.clear();
  to_send_.reset();
  for (auto* port : {&source_up_, &source_down_, &up_, &down_}) {
    if (port->has_value()) (*port)->DropWaiting();
  }
}

}  // namespace stagecoach
