// A library with NVML's names and one card, 0000:3b:00.0, for tests. Its power is the number of
// times that it was asked, and it does not know its temperature.
#include <cstring>

namespace {
int sessions = 0;
unsigned int asked = 0;
int card = 0;
}  // namespace

extern "C" {

struct FakeUtilization {
  unsigned int gpu, memory;
};
struct FakeMemory {
  unsigned long long total, free, used;
};

int nvmlInit_v2() { return ++sessions, 0; }
int nvmlShutdown() { return --sessions, 0; }
const char* nvmlErrorString(int code) { return code == 6 ? "Not Found" : "Unknown Error"; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  *device = &card;
  return std::strcmp(address, "0000:3b:00.0") == 0 ? 0 : 6;
}
int nvmlDeviceGetUtilizationRates(void* device, FakeUtilization* rates) {
  *rates = {75, 30};
  return device == &card ? 0 : 2;
}
int nvmlDeviceGetPowerUsage(void*, unsigned int* milliwatts) {
  *milliwatts = 1000 * ++asked;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned int*) { return 3; }  // not supported
int nvmlDeviceGetMemoryInfo(void*, FakeMemory* memory) {
  *memory = {1000, 400, 600};
  return 0;
}
int FakeNvmlSessions() { return sessions; }

}  // extern "C"
