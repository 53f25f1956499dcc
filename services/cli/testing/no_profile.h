// NoProfile: in a test that reads a command line, the profile and the variables of the person who
// runs it do not count.
#ifndef STAGECOACH_SERVICES_CLI_TESTING_NO_PROFILE_H_
#define STAGECOACH_SERVICES_CLI_TESTING_NO_PROFILE_H_

#include <stdlib.h>

namespace stagecoach {

struct NoProfile {
  NoProfile() {
    setenv("STAGECOACH_CONFIG", "/dev/null", 1);
    for (const char* name :
         {"STAGECOACH_CLUSTER", "STAGECOACH_ADDRESS", "STAGECOACH_TLS", "STAGECOACH_TLS_CA",
          "STAGECOACH_TLS_CERT", "STAGECOACH_TLS_KEY", "STAGECOACH_TOKEN_FILE"}) {
      unsetenv(name);
    }
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TESTING_NO_PROFILE_H_
