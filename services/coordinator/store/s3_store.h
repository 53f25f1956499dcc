// S3Store: the parts of --store=s3://BUCKET/PREFIX at the coordinator, which alone has credentials.
// Ownership: owns its parts; borrows the file system below.
// Threads:   thread-safe.
// Errors:    Open: as ParseS3Location, S3CredentialSource and S3Files::Probe.
#ifndef STAGECOACH_SERVICES_COORDINATOR_STORE_S3_STORE_H_
#define STAGECOACH_SERVICES_COORDINATOR_STORE_S3_STORE_H_

#include <memory>
#include <string>
#include <utility>

#include "base/errors/status.h"
#include "services/coordinator/store/s3_files.h"
#include "services/coordinator/store/s3_objects.h"

namespace stagecoach {

struct S3Store {
  S3Store(S3Location location, FileSystem* below)
      : client({.location = location}, &transfer, &credentials),
        files(below, &client),
        quick({.location = std::move(location), .give_up_seconds = kQuickSeconds}, &transfer,
              &credentials),
        quick_files(below, &quick),
        objects(&quick_files, &quick) {}

  // Callers repeat their calls themselves, and share few threads.
  static constexpr double kQuickSeconds = 5;

  // endpoint: as EndpointOfProcess has it.
  static absl::StatusOr<std::unique_ptr<S3Store>> Open(const std::string& store,
                                                       const std::string& endpoint,
                                                       FileSystem* below) {
    ASSIGN_OR_RETURN(S3Location location,
                     ParseS3Location(store, EndpointOfProcess(endpoint), RegionOfProcess()));
    auto opened = std::make_unique<S3Store>(std::move(location), below);
    RETURN_IF_ERROR(Annotate(opened->files.Probe(), "--store"));
    return opened;
  }

  HttpTransfer transfer;
  S3CredentialSource credentials{&transfer, SystemClock::Get()};
  S3Client client;
  S3Files files;  // the coordinator's own
  S3Client quick;
  S3Files quick_files;
  S3Objects objects;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_STORE_S3_STORE_H_
