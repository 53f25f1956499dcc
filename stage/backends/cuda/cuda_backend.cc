#include "stage/backends/cuda/cuda_backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "stage/backends/attention_shape.h"
#include "stage/backends/cuda/make_cuda_backend.h"
#include "stage/backends/cuda/matmul/matmul_table_file.h"
#include "stage/backends/kernel_table.h"

namespace stagecoach::cuda {
namespace {

// The forward of an attention that a library is asked for: every column exists.
std::optional<AttentionShape> AttentionForLibrary(const Call& call, const CallTypes& types,
                                                  int64_t samples) {
  if (call.operation != "attention" || types.inputs.size() > 1) return std::nullopt;
  const ForwardContext run{.sequences = samples};
  return ShapeOfAttention(AttributesOf<AttentionAttributes>(call), types.inputs[0], {run});
}

}  // namespace

CudaBackend::CudaBackend(std::unique_ptr<CudaContext> context,
                         std::shared_ptr<const MatmulTable> table)
    : KernelBackend(context->fault()),
      context_(std::move(context)),
      matmul_(context_.get(), std::move(table)),
      attention_(cudnn::OpenAttentionGraphs(context_->stream(), context_->compute_capability()),
                 &context_->allocator(),
                 {context_->workspace(), static_cast<int64_t>(context_->workspace_bytes())}),
      convolution_(cudnn::OpenConvolutionGraphs(context_->stream(), context_->compute_capability()),
                   {context_->workspace(), static_cast<int64_t>(context_->workspace_bytes())}),
      pool_(cudnn::OpenPoolGraphs(context_->stream(), context_->compute_capability()),
            {context_->workspace(), static_cast<int64_t>(context_->workspace_bytes())}) {}

CudaBackend::~CudaBackend() {
  Settle();
  context_->Synchronize().IgnoreError();
  context_->allocator().SetBeforeRelease(nullptr);
}

void CudaBackend::QueueCalls(std::function<void(const std::string&)> say) {
  calls_ = std::make_unique<CallQueue>(
      CallQueue::Parts{.api = graphs_.get(),
                       .stream = context_->stream(),
                       .fault = &fault(),
                       .make_current = [this] { context_->MakeCurrent(); },
                       .launched = [this](int calls) { context_->progress().Operations(calls); },
                       .say =
                           [say = std::move(say)](const std::string& line) {
                             if (say) say(line);
                           }});
  QueueCallsIn(calls_.get());
  context_->allocator().SetBeforeRelease([this] { calls_->ForgetGraphs(); });
}

void CudaBackend::Settle() {
  context_->MakeCurrent();
  if (calls_ != nullptr) calls_->Settle();
}

void CudaBackend::NoteRoom(int64_t taken_before) {
  if (calls_ != nullptr && attention_.rooms_taken() > taken_before) calls_->TakesMemory();
}

std::string CudaBackend::fingerprint() const {
  constexpr size_t kDigits = 12;
  const MatmulTable* const table = matmul_.table();
  return absl::StrCat(
      context_->fingerprint(),
      table == nullptr ? "" : absl::StrCat(", matmul table ", table->Digest().substr(0, kDigits)),
      ", ", attention_.fingerprint(), ", ", convolution_.fingerprint(), ", ", pool_.fingerprint());
}

// The two directions of an attention are of one make, so the forward's way names both.
absl::StatusOr<CallDescription> CudaBackend::Describe(const Call& call, const CallTypes& types,
                                                      int64_t samples, DType activation) {
  ASSIGN_OR_RETURN(CallDescription description,
                   KernelBackend::Describe(call, types, samples, activation));
  const std::optional<AttentionShape> shape = AttentionForLibrary(call, types, samples);
  if (!shape.has_value()) return description;
  Begin();
  ASSIGN_OR_RETURN(cudnn::AttentionWay way, attention_.Way(*shape, activation));
  description.way = std::move(way.way);
  description.why = std::move(way.why);
  description.way_varies = true;
  return description;
}

absl::StatusOr<bool> CudaBackend::AttendByLibrary(const AttentionForwardArgs& args) {
  Begin();
  if (!context_->ok()) return true;
  const int64_t rooms = attention_.rooms_taken();
  ASSIGN_OR_RETURN(const bool attended, attention_.Forward(args));
  NoteRoom(rooms);
  attended_by_library_ |= attended;
  return attended;
}

absl::StatusOr<bool> CudaBackend::AttendByLibrary(const AttentionBackwardArgs& args) {
  Begin();
  if (!context_->ok()) return true;
  const int64_t rooms = attention_.rooms_taken();
  ASSIGN_OR_RETURN(const bool attended, attention_.Backward(args));
  NoteRoom(rooms);
  attended_by_library_ |= attended;
  return attended;
}

absl::StatusOr<bool> CudaBackend::ConvolveByLibrary(const ConvolutionArgs& args,
                                                    const AroundConvolution& around) {
  Begin();
  if (!context_->ok()) return true;
  return convolution_.Run(args, around);
}

absl::StatusOr<bool> CudaBackend::AverageByLibrary(const AveragePoolArgs& args) {
  Begin();
  if (!context_->ok()) return true;
  return pool_.Run(args);
}

std::vector<std::string> CudaBackend::TakeWays() {
  std::vector<std::string> ways = matmul_.TakeUsed();
  for (std::string& way : convolution_.TakeUsed()) ways.push_back(std::move(way));
  for (std::string& way : pool_.TakeUsed()) ways.push_back(std::move(way));
  if (std::exchange(attended_by_library_, false)) ways.push_back(attention_.fingerprint());
  if (ways.empty()) ways.emplace_back("own kernels");
  return ways;
}

// A capture has no place for progress: what its events would say is not asked, and asking would end
// it.
cudaStream_t CudaBackend::Begin() {
  Settle();
  if (calls_ == nullptr || !calls_->capturing()) context_->progress().Operation();
  return context_->stream();
}

void* CudaBackend::Scratch(size_t bytes, const char* what) {
  if (bytes > context_->workspace_bytes()) {
    fault().NoteStatus(absl::ResourceExhaustedError(absl::StrCat(
                           bytes, " bytes asked, the workspace has ", context_->workspace_bytes(),
                           "; use smaller micro-batches")),
                       what);
    return nullptr;
  }
  return context_->workspace();
}

MatmulEpilogue CudaBackend::Product(const MatmulShape& shape, const MatmulOperands& operands,
                                    const char* what) {
  return matmul_.Run(shape, operands, what);
}

// Pageable memory has been taken over when the call returns; pinned memory is borrowed until
// Synchronize, as the contract says.
void CudaBackend::CopyFromHost(std::span<const std::byte> source, const Tensor& target) {
  CHECK_EQ(static_cast<int64_t>(source.size()), target.bytes()) << target.shape().ToString();
  if (source.empty()) return;
  const cudaStream_t stream = Begin();
  Note(cudaMemcpyAsync(target.raw(), source.data(), source.size(), cudaMemcpyHostToDevice, stream),
       "CopyFromHost");
}

void CudaBackend::CopyToHost(const Tensor& source, std::span<std::byte> target) {
  CHECK_EQ(static_cast<int64_t>(target.size()), source.bytes()) << source.shape().ToString();
  if (target.empty()) return;
  const cudaStream_t stream = Begin();
  context_->progress().Wait("CopyToHost");  // a copy to pageable memory would, without a sign
  Note(cudaMemcpyAsync(target.data(), source.raw(), target.size(), cudaMemcpyDeviceToHost, stream),
       "CopyToHost");
  Note(cudaStreamSynchronize(stream), "CopyToHost");
}

absl::StatusOr<uint64_t> CudaBackend::CopyToLink(const Tensor& source, const Tensor& target) {
  Settle();
  return context_->staging().ToLink(source, target);
}

absl::StatusOr<bool> CudaBackend::LinkCopyDone(uint64_t copy) {
  context_->MakeCurrent();
  return context_->staging().Done(copy);
}

absl::StatusOr<Tensor> CudaBackend::CopyFromLink(const Tensor& source) {
  Settle();
  return context_->staging().FromLink(source);
}

void CudaBackend::OnLinkCopyDone(std::function<void()> wake) {
  context_->staging().OnDone(std::move(wake));
}

void CudaBackend::EndLinkCopies() {
  Settle();
  context_->staging().End();
}

bool CudaBackend::MarkTime() {
  Settle();
  context_->clock().Mark();
  return true;
}

std::vector<int64_t> CudaBackend::TakeTimes() {
  Settle();
  return context_->clock().Take();
}

void CudaBackend::TellProgress() {
  context_->MakeCurrent();
  context_->progress().Look();
}

absl::Status CudaBackend::Synchronize() {
  Settle();
  return context_->Synchronize();
}

}  // namespace stagecoach::cuda

namespace stagecoach {
namespace {

absl::StatusOr<std::shared_ptr<const cuda::MatmulTable>> TableFor(const std::string& path,
                                                                  const CudaContext& context) {
  ASSIGN_OR_RETURN(cuda::MatmulTable table, cuda::LoadMatmulTable(path));
  RETURN_IF_ERROR(Annotate(table.CheckFits(cuda::TableHeaderOf(context)), path));
  return std::make_shared<const cuda::MatmulTable>(std::move(table));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const BackendOptions& options,
                                                         int ordinal) {
  ASSIGN_OR_RETURN(auto context,
                   CudaContext::Open(ordinal, options.memory_limit_bytes,
                                     options.cuda_graphs ? Reuse::kLowest : Reuse::kLast));
  std::shared_ptr<const cuda::MatmulTable> table;
  if (!options.matmul_table.empty()) {
    ASSIGN_OR_RETURN(table, Annotate(TableFor(options.matmul_table, *context), "--matmul-table"));
  }
  auto backend = std::make_unique<cuda::CudaBackend>(std::move(context), std::move(table));
  if (options.cuda_graphs) backend->QueueCalls(options.say);
  return backend;
}

cuda::MatmulTrials* MatmulTrialsOf(Backend& backend) {
  auto* const card = dynamic_cast<cuda::CudaBackend*>(&backend);
  return card == nullptr ? nullptr : &card->trials();
}

std::string CudaDeviceAddress(int ordinal) {
  char address[32] = "";
  if (cudaDeviceGetPCIBusId(address, sizeof(address), ordinal) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return "";
  }
  return address;
}

}  // namespace stagecoach
