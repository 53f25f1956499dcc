// RpcLoop: one thread and one completion queue for all of gRPC in a process that moves tensors.
// gRPC elects one polling thread for the whole process. If the thread that handles a stream is the
// only one, a message costs no wake-up and no change of thread. With a second poller, a callback
// service among them, each message changes threads (docs/benchmarks.md).
// Ownership: owns queue and thread. Operations under way keep their objects (RpcOperation) and the
//            queue (Use); the loop's owner calls Stop or the destructor.
// Threads:   thread-safe; events happen on the loop's thread, one after the other, so they must not
//            block. Stop and the destructor run on any thread but that one.
// Errors:    none. An operation that failed happens with ok = false.
#ifndef STAGECOACH_STAGE_LINK_GRPC_RPC_LOOP_H_
#define STAGECOACH_STAGE_LINK_GRPC_RPC_LOOP_H_

#include <grpcpp/completion_queue.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "base/errors/check.h"
#include "base/threads/thread.h"

namespace stagecoach {

class RpcLoop {
 public:
  // The type of gRPC's tags here. It is called once, when its operation is over.
  class Event {
   public:
    virtual void Happened(bool ok) = 0;

   protected:
    ~Event() = default;
  };

  // Keeps the queue from being shut down, after which no operation may start.
  class Use {
   public:
    explicit Use(RpcLoop* loop) : loop_(loop) { loop_->Count(+1); }
    ~Use() { loop_->Count(-1); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    RpcLoop* loop() const { return loop_; }

   private:
    RpcLoop* const loop_;
  };

  RpcLoop();  // for outgoing calls only
  explicit RpcLoop(std::unique_ptr<grpc::ServerCompletionQueue> queue);
  ~RpcLoop() { Stop(); }
  RpcLoop(const RpcLoop&) = delete;
  RpcLoop& operator=(const RpcLoop&) = delete;

  grpc::CompletionQueue* queue() { return queue_.get(); }
  grpc::ServerCompletionQueue* server_queue() { return server_queue_; }  // null: calls only

  // Waits for the end of every Use, and ends the loop. Shut down a server on it before.
  void Stop();

 private:
  void Count(int change);
  void Run();

  const std::unique_ptr<grpc::CompletionQueue> queue_;
  grpc::ServerCompletionQueue* const server_queue_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable unused_;
  int uses_ = 0;
  bool stopped_ = false;
  Thread thread_;
};

// An operation of T that is started many times, one at a time. It keeps its object meanwhile.
template <typename T>
class RpcOperation final : public RpcLoop::Event {
 public:
  using Done = void (T::*)(bool ok);
  explicit RpcOperation(Done done) : done_(done) {}

  // The tag for gRPC.
  void* Start(std::shared_ptr<T> self) {
    CHECK(self_ == nullptr) << "an operation is started before it was over";
    self_ = std::move(self);
    return static_cast<RpcLoop::Event*>(this);
  }
  // For an operation that gRPC will not tell about: the end of a call that never began.
  void Forget() { self_.reset(); }

  void Happened(bool ok) override {
    const std::shared_ptr<T> self = std::move(self_);
    (self.get()->*done_)(ok);
  }

 private:
  const Done done_;
  std::shared_ptr<T> self_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_RPC_LOOP_H_
