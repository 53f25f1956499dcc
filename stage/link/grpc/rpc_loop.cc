#include "stage/link/grpc/rpc_loop.h"

namespace stagecoach {

RpcLoop::RpcLoop()
    : queue_(std::make_unique<grpc::CompletionQueue>()),
      server_queue_(nullptr),
      thread_("rpc", [this] { Run(); }) {}

RpcLoop::RpcLoop(std::unique_ptr<grpc::ServerCompletionQueue> queue)
    : queue_(std::move(queue)),
      server_queue_(static_cast<grpc::ServerCompletionQueue*>(queue_.get())),
      thread_("rpc", [this] { Run(); }) {}

void RpcLoop::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<Event*>(tag)->Happened(ok);
}

void RpcLoop::Count(int change) {
  std::lock_guard<std::mutex> lock(mutex_);
  CHECK(change < 0 || !stopped_) << "a call begins on a loop that has ended";
  uses_ += change;
  // Under the mutex: with the last use the loop may be destroyed at once.
  if (uses_ == 0) unused_.notify_all();
}

void RpcLoop::Stop() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    unused_.wait(lock, [this] { return uses_ == 0; });
    if (stopped_) return;
    stopped_ = true;
  }
  queue_->Shutdown();
  thread_.Join();
}

}  // namespace stagecoach
