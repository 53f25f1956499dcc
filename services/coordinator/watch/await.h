// Await: waits for the answer of a function that calls back: for HTTP and metrics threads.
// Errors: nullopt if the answer takes longer; a later one is dropped.
#ifndef STAGECOACH_SERVICES_COORDINATOR_WATCH_AWAIT_H_
#define STAGECOACH_SERVICES_COORDINATOR_WATCH_AWAIT_H_

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"

namespace stagecoach {

// Longest wait for the job loop, which takes milliseconds unless something is wrong.
inline constexpr double kLoopAnswerSeconds = 1;

// ask(done): calls done(T) once, from any thread.
template <typename T, typename Ask>
std::optional<T> Await(double seconds, Ask ask) {
  auto promise = std::make_shared<std::promise<T>>();
  std::future<T> future = promise->get_future();
  ask([promise](T value) { promise->set_value(std::move(value)); });
  const auto limit = std::chrono::duration<double>(seconds);
  if (future.wait_for(limit) != std::future_status::ready) return std::nullopt;
  return future.get();
}

// The same if the answer may be a refusal, which also counts as none.
template <typename T, typename Ask>
std::optional<T> AwaitOk(double seconds, Ask ask) {
  std::optional<absl::StatusOr<T>> answer = Await<absl::StatusOr<T>>(seconds, ask);
  if (!answer.has_value() || !answer->ok()) return std::nullopt;
  return **std::move(answer);
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_WATCH_AWAIT_H_
