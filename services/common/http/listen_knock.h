// ListenKnock: connects to a socket of this process again and again, to wake the thread that polls
// it. civetweb's master thread looks for its stop flag only between polls of two seconds, which
// every program would otherwise spend at its end.
// Ownership: owns its thread, which ends with the object.
// Errors:    none: an address that cannot be reached wakes nobody.
#ifndef STAGECOACH_SERVICES_COMMON_HTTP_LISTEN_KNOCK_H_
#define STAGECOACH_SERVICES_COMMON_HTTP_LISTEN_KNOCK_H_

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace stagecoach {

class ListenKnock {
 public:
  // listen: "127.0.0.1:8000", "0.0.0.0:8000", "[::]:8000"; port: the bound one.
  ListenKnock(const std::string& listen, int port);
  ListenKnock(const ListenKnock&) = delete;
  ListenKnock& operator=(const ListenKnock&) = delete;
  ~ListenKnock();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP_LISTEN_KNOCK_H_
