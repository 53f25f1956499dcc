// Conversion of a CardProfile (devices/card/card_profile.h) and of a HostProfile
// (devices/host/host_profile.h) to proto/stagecoach/v1/fleet.proto and back: a stage registers it,
// the coordinator plans by it.
// Errors:    none. Unknown values, as precisions of a newer stage, are left out; divisors are at
//            least 1.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_CARD_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_CARD_H_

#include "devices/card/card_profile.h"
#include "devices/host/host_profile.h"
#include "stagecoach/v1/fleet.pb.h"

namespace stagecoach {

v1::Card ToProto(const CardProfile& card);
CardProfile FromProto(const v1::Card& proto);
v1::Processor ToProto(const HostProfile& host);
HostProfile FromProto(const v1::Processor& proto);  // of nothing: what takes most, with one thread

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_CARD_H_
