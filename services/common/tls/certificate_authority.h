// CertificateAuthority: the private authority of a cluster, and the certificates for mutual TLS
// that it signs. Keys are of the curve P-256.
//   FOLDER/ca.pem, FOLDER/ca.key           the authority, good for ten years
//   FOLDER/NAME/{ca.pem,tls.crt,tls.key}   the files that one service or person gets
// Keys have the rights 0600, certificates 0644. A new FOLDER has 0755 and a new FOLDER/NAME 0700.
// Each file is replaced whole, so a server that reads it never sees a half. One authority of a
// folder is open at a time; another one waits (folder_lock.h).
// A validity begins an hour ago: the clocks of two machines are not equal.
// Ownership: owns key and certificate in memory, and the folder's lock.
// Threads:   one at a time.
// Errors:    FAILED_PRECONDITION names a file that is not this authority's, and the remedy. The file
//            is missing or no PEM, the key fits no certificate, or the certificate has expired or
//            is of no authority. It also names a folder that another command uses for too long.
//            Nothing is replaced then.
//            PERMISSION_DENIED and UNAVAILABLE name a path and the system's error.
#ifndef STAGECOACH_SERVICES_COMMON_TLS_CERTIFICATE_AUTHORITY_H_
#define STAGECOACH_SERVICES_COMMON_TLS_CERTIFICATE_AUTHORITY_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/tls/certificate_entry.h"
#include "services/common/tls/folder_lock.h"

namespace stagecoach {

class CertificateAuthority {
 public:
  static constexpr int kMostDays = 3650;  // of a certificate, under a new authority

  // The authority of the folder. If the folder has neither ca.pem nor ca.key, both are made. ca.pem
  // may have several certificates, as while an authority is replaced: the one of the key signs.
  // INVALID_ARGUMENT if `folder` is empty.
  static absl::StatusOr<CertificateAuthority> Open(const std::string& folder);
  CertificateAuthority(CertificateAuthority&&) noexcept;
  ~CertificateAuthority();

  bool is_new() const { return is_new_; }

  // FAILED_PRECONDITION if FOLDER/NAME has the certificate of another role, which Issue would
  // replace.
  absl::Status CheckEntry(const CertificateEntry& entry) const;

  // Makes a key and a certificate and writes them to FOLDER/NAME, over files of these names. The
  // certificate of a user or operator is good for clients only: otherwise its holder could pose as
  // the coordinator and learn tokens. owner: the user of FOLDER/NAME and its files; none: this
  // process's. INVALID_ARGUMENT if a certificate of so many days outlives the authority's own; else
  // as CheckEntry.
  absl::Status Issue(const CertificateEntry& entry, int days, std::optional<uid_t> owner) const;

 private:
  struct Signer;
  absl::Status CheckDays(int days) const;
  CertificateAuthority(std::string folder, FolderLock lock, std::unique_ptr<Signer> signer,
                       bool is_new);

  std::string folder_;
  FolderLock lock_;
  std::unique_ptr<Signer> signer_;
  bool is_new_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_TLS_CERTIFICATE_AUTHORITY_H_
