// FleetServiceAdapter: FleetService over the job manager.
// Ownership: borrows the manager.
// Threads:   gRPC's; the manager answers on its own.
// Errors:    the manager's; PERMISSION_DENIED naming both if a stage's certificate is not for the
//            name that it registers or renews. (role_processor.h has checked before which roles may
//            call.)
#ifndef STAGECOACH_SERVICES_COORDINATOR_API_FLEET_SERVICE_H_
#define STAGECOACH_SERVICES_COORDINATOR_API_FLEET_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "coordinator/loop/job_manager.h"
#include "stagecoach/v1/fleet.grpc.pb.h"

namespace stagecoach {

class FleetServiceAdapter final : public v1::FleetService::CallbackService {
 public:
  explicit FleetServiceAdapter(JobManager* manager) : manager_(manager) {}
  grpc::ServerUnaryReactor* RegisterStage(grpc::CallbackServerContext* context,
                                          const v1::RegisterStageRequest* request,
                                          v1::RegisterStageResponse* response) override;
  grpc::ServerUnaryReactor* RenewLease(grpc::CallbackServerContext* context,
                                       const v1::RenewLeaseRequest* request,
                                       v1::RenewLeaseResponse* response) override;
  grpc::ServerUnaryReactor* ListStages(grpc::CallbackServerContext* context,
                                       const v1::ListStagesRequest* request,
                                       v1::ListStagesResponse* response) override;

 private:
  JobManager* const manager_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_API_FLEET_SERVICE_H_
