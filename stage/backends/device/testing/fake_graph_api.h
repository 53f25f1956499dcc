// FakeGraphApi: captures as functions, for tests. Launches go to Do: they run at once, or are
// recorded during a capture. Any call can be told to fail.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_TESTING_FAKE_GRAPH_API_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_TESTING_FAKE_GRAPH_API_H_

#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "stage/backends/device/graph_api.h"

namespace stagecoach {

class FakeGraphApi final : public GraphApi {
 public:
  static constexpr int kFailure = 901;  // cudaErrorStreamCaptureInvalidated

  int begin_code = 0, end_code = 0, launch_code = 0;
  int captures = 0, launches = 0, destroyed = 0;
  int done = 0;                            // launches of kernels, from graphs or not
  std::function<void(bool)> on_capturing;  // called when a capture begins and when it has ended

  // Graphs that nobody destroyed are a leak.
  ~FakeGraphApi() override { CHECK(graphs_.empty()) << graphs_.size() << " graphs are left"; }

  bool capturing() const { return capturing_; }
  size_t graphs() const { return graphs_.size(); }
  void Do(std::function<void()> work) {
    if (capturing_) return written_.push_back(std::move(work));
    ++done;
    work();
  }

  int BeginCapture(DeviceStream) override {
    CHECK(!capturing_) << "a stream captures once at a time";
    if (begin_code != 0) return begin_code;
    Capturing(true);
    return 0;
  }
  int EndCapture(DeviceStream, DeviceGraph* graph) override {
    CHECK(capturing_) << "no capture was begun";
    Capturing(false);
    auto made = std::make_unique<Graph>(std::exchange(written_, {}));
    if (end_code != 0) return end_code;
    ++captures;
    *graph = made.get();
    graphs_.insert(made.release());
    return 0;
  }
  int Launch(DeviceGraph graph, DeviceStream) override {
    CHECK(!capturing_ && graphs_.contains(static_cast<Graph*>(graph))) << "no graph to launch";
    if (launch_code != 0) return launch_code;
    ++launches;
    for (const auto& work : *static_cast<Graph*>(graph)) Do(work);
    return 0;
  }
  int Destroy(DeviceGraph graph) override {
    CHECK_EQ(graphs_.erase(static_cast<Graph*>(graph)), 1u) << "destroyed twice";
    delete static_cast<Graph*>(graph);
    ++destroyed;
    return 0;
  }

 private:
  using Graph = std::vector<std::function<void()>>;

  void Capturing(bool capturing) {
    capturing_ = capturing;
    if (on_capturing) on_capturing(capturing);
  }

  bool capturing_ = false;
  Graph written_;
  std::set<Graph*> graphs_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_TESTING_FAKE_GRAPH_API_H_
