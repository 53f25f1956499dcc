// Thread: a named thread that its owner joins. No thread is ever detached.
#ifndef STAGECOACH_BASE_THREADS_THREAD_H_
#define STAGECOACH_BASE_THREADS_THREAD_H_

#include <functional>
#include <string>
#include <thread>

namespace stagecoach {

class Thread {
 public:
  Thread() = default;
  Thread(const std::string& name, std::function<void()> body);  // name: at most 15 characters count
  ~Thread() { Join(); }
  Thread(Thread&&) = default;
  Thread& operator=(Thread&& other);
  void Join();  // safe to call twice
  bool joinable() const { return thread_.joinable(); }

 private:
  std::thread thread_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_THREADS_THREAD_H_
