#include "base/threads/thread.h"

#include <pthread.h>

#include <utility>

namespace stagecoach {

Thread::Thread(const std::string& name, std::function<void()> body)
    : thread_([short_name = name.substr(0, 15), body = std::move(body)] {
        pthread_setname_np(pthread_self(), short_name.c_str());
        body();
      }) {}

Thread& Thread::operator=(Thread&& other) {
  Join();
  thread_ = std::move(other.thread_);
  return *this;
}

void Thread::Join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace stagecoach
