#include "services/common/listener/self_check.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <string>

namespace stagecoach {

void SelfCheck::Start() {
  if (thread_.joinable()) return;
  ending_ = false;
  thread_ = Thread("self-check", [this] { Run(); });
}

void SelfCheck::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.Join();
}

void SelfCheck::Run() {
  const auto pause = std::chrono::duration<double>(options_.seconds_between);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_.wait_for(lock, pause, [this] { return ending_; })) {
    lock.unlock();
    Look();
    lock.lock();
  }
}

void SelfCheck::Look() {
  const double begin = options_.clock->MonotonicSeconds();
  const absl::Status answer = options_.dial();
  if (answer.ok()) {
    failures_ = 0;
    if (!well_.exchange(true)) spdlog::info("the gRPC port answers again");
    return;
  }
  if (options_.busy && options_.busy()) return;
  if (failures_ == 0) first_failure_seconds_ = begin;
  ++failures_;
  const std::string reason(answer.message());
  const double seconds = options_.clock->MonotonicSeconds() - first_failure_seconds_;
  if (failures_ == options_.failures_until_unwell) {
    well_ = false;
    spdlog::error(
        "the gRPC port has not answered its own process {} times in a row, for {:.0f} s: {}; "
        "/livez says so",
        failures_, seconds, reason);
  }
  if (failures_ == options_.failures_until_dead) {
    spdlog::critical(
        "the gRPC port has not answered its own process for {:.0f} s: {}; this one ends", seconds,
        reason);
    if (options_.on_dead) options_.on_dead();
  }
}

}  // namespace stagecoach
