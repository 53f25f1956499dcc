#include "services/common/tls/certificate_authority.h"

#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/file_handle.h"
#include "base/utf8.h"
#include "services/common/grpc/access/peer_identity.h"
#include "services/common/tls/openssl_objects.h"
#include "services/common/tls/regular_file.h"

namespace stagecoach {
namespace {

constexpr int kSerialBits = 127;  // positive, in 16 bytes
constexpr long kSecondsBefore = 3600;
constexpr long kSecondsPerDay = 86400;
constexpr int kAuthorityDays = CertificateAuthority::kMostDays + 1;
constexpr mode_t kKeyRights = 0600, kCertificateRights = 0644;
constexpr char kUnfinished[] = ".unfinished.";
constexpr mode_t kFolderRights = 0755, kNameFolderRights = 0700;

absl::Status SystemError(const std::string& path, const char* step) {
  const std::string text = absl::StrCat(ShownName(path), ": ", step, ": ", std::strerror(errno));
  const bool forbidden = errno == EACCES || errno == EPERM || errno == EROFS;
  return forbidden ? absl::PermissionDeniedError(text) : absl::UnavailableError(text);
}

// A folder that is there keeps its rights.
absl::Status MakeFolder(const std::string& path, mode_t rights) {
  std::error_code error;
  const std::filesystem::path above = std::filesystem::path(path).parent_path();
  if (!above.empty()) std::filesystem::create_directories(above, error);
  if (mkdir(path.c_str(), rights) != 0) {
    if (errno != EEXIST) return SystemError(path, "make the folder");
    if (std::filesystem::is_directory(path, error)) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        ShownName(path), ": is there and is no folder; take it away, or name another"));
  }
  // mkdir leaves out the rights of the process's mask.
  return chmod(path.c_str(), rights) == 0 ? absl::OkStatus() : SystemError(path, "set its rights");
}

absl::Status Fill(int file, const std::string& text, mode_t rights, std::optional<uid_t> owner,
                  const std::string& path) {
  if (write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return SystemError(path, "write");
  }
  if (fchmod(file, rights) != 0) return SystemError(path, "set its rights");
  if (owner.has_value() && fchown(file, *owner, static_cast<gid_t>(-1)) != 0) {
    return SystemError(path, "change its owner");
  }
  return fsync(file) == 0 ? absl::OkStatus() : SystemError(path, "write");
}

// Files that an interrupted command left; the lock of the authority's folder excludes those of
// another one.
void RemoveUnfinished(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::string begin = absl::StrCat(whole.filename().string(), kUnfinished);
  std::error_code error;
  for (std::filesystem::directory_iterator at(whole.parent_path(), error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename().string().starts_with(begin)) unlink(at->path().c_str());
  }
}

// Never over a file of that name, and removes only a file that it made.
absl::Status MakeFile(const std::string& path, const std::string& text, mode_t rights) {
  const FileHandle file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kKeyRights));
  if (!file.open()) return SystemError(path, "make");
  const absl::Status status = Fill(file.get(), text, rights, std::nullopt, path);
  if (!status.ok()) unlink(path.c_str());
  return status;
}

// Over a file of that name. In a folder of another user nothing but a new file is written or given
// away: whoever put a link there would be given the file behind it.
absl::Status WriteFile(const std::string& path, const std::string& text, mode_t rights,
                       std::optional<uid_t> owner) {
  RemoveUnfinished(path);
  std::string unfinished = absl::StrCat(path, kUnfinished, "XXXXXX");
  const FileHandle file(mkostemp(unfinished.data(), O_CLOEXEC));  // a new file, for its owner alone
  if (!file.open()) return SystemError(path, "make");
  absl::Status status = Fill(file.get(), text, rights, owner, unfinished);
  if (status.ok() && std::rename(unfinished.c_str(), path.c_str()) != 0) {
    status = SystemError(path, "replace");
  }
  if (!status.ok()) unlink(unfinished.c_str());
  return status;
}

std::string PemOf(X509* certificate) {
  const Owned<BIO> text(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_X509(text.get(), certificate) == 1) << "no PEM of a certificate";
  return TextIn(text);
}

std::string PemOf(EVP_PKEY* key) {
  const Owned<BIO> text(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_PrivateKey(text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1)
      << "no PEM of a key";
  return TextIn(text);
}

Owned<EVP_PKEY> NewKey() {
  Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  CHECK(key != nullptr) << "no key of P-256";
  return key;
}

void Extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Owned<X509_EXTENSION> made(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  CHECK(made != nullptr && X509_add_ext(certificate, made.get(), -1) == 1) << value;
}

// Names itself its issuer; not signed.
Owned<X509> NewCertificate(const std::string& common_name, EVP_PKEY* key, int days) {
  Owned<X509> made(X509_new());
  const Owned<BIGNUM> serial(BN_new());
  CHECK(X509_set_version(made.get(), X509_VERSION_3) == 1 &&
        BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
        BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(made.get())) != nullptr)
      << "no random serial number";
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -kSecondsBefore);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), days * kSecondsPerDay);
  X509_NAME* const subject = X509_get_subject_name(made.get());
  for (const auto& [field, value] :
       {std::pair<const char*, std::string>{"O", "Stagecoach"}, {"CN", common_name}}) {
    CHECK(X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8,
                                     reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1,
                                     0) == 1)
        << value;
  }
  X509_set_issuer_name(made.get(), subject);
  X509_set_pubkey(made.get(), key);
  return made;
}

Owned<X509> NewAuthority(EVP_PKEY* key) {
  Owned<X509> made = NewCertificate("Stagecoach cluster authority", key, kAuthorityDays);
  Extend(made.get(), made.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  Extend(made.get(), made.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  Extend(made.get(), made.get(), NID_subject_key_identifier, "hash");
  CHECK(X509_sign(made.get(), key, EVP_sha256()) > 0) << "no signature";
  return made;
}

// Nobody is asked for a password at the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

absl::Status NotOurs(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat(ShownName(path), ": ", why));
}

constexpr char kAnotherFolder[] = "; bring the right file, or name another folder";

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  absl::StatusOr<std::string> text = ReadRegularFile(path);
  if (absl::IsFailedPrecondition(text.status())) {
    return NotOurs(path, absl::StrCat(text.status().message(), kAnotherFolder));
  }
  return Annotate(std::move(text), ShownName(path));
}

absl::StatusOr<Owned<EVP_PKEY>> ReadKey(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string pem, ReadFile(path));
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(ReaderOf(pem).get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) {
    return NotOurs(path, absl::StrCat("is no PEM private key, or has a password", kAnotherFolder));
  }
  return key;
}

// The certificate of that key among those of the text.
absl::StatusOr<Owned<X509>> FindCertificate(const std::string& path, const std::string& pem,
                                            const std::string& key_path, EVP_PKEY* key) {
  const Owned<BIO> reader = ReaderOf(pem);
  bool any = false;
  while (Owned<X509> one{PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)}) {
    any = true;
    if (X509_check_private_key(one.get(), key) != 1) continue;
    if (X509_check_ca(one.get()) != 1) {
      return NotOurs(path, absl::StrCat("is the certificate of no authority", kAnotherFolder));
    }
    if (X509_cmp_current_time(X509_get0_notAfter(one.get())) < 0) {
      return NotOurs(path, absl::StrCat("expired on ", TimeText(X509_get0_notAfter(one.get())),
                                        "; make a new authority in another folder"));
    }
    return one;
  }
  if (!any) return NotOurs(path, absl::StrCat("is no PEM certificate", kAnotherFolder));
  return NotOurs(key_path, absl::StrCat("does not belong to ", ShownName(path), kAnotherFolder));
}

std::vector<std::string> UrisOf(X509* certificate) {
  std::vector<std::string> uris;
  auto* const names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    const ASN1_STRING* const uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  GENERAL_NAMES_free(names);
  return uris;
}

}  // namespace

struct CertificateAuthority::Signer {
  Owned<EVP_PKEY> key;
  Owned<X509> certificate;
  std::string pem;  // of ca.pem, all of it
};

CertificateAuthority::CertificateAuthority(std::string folder, FolderLock lock,
                                           std::unique_ptr<Signer> signer, bool is_new)
    : folder_(std::move(folder)),
      lock_(std::move(lock)),
      signer_(std::move(signer)),
      is_new_(is_new) {}
CertificateAuthority::CertificateAuthority(CertificateAuthority&&) noexcept = default;
CertificateAuthority::~CertificateAuthority() = default;

absl::StatusOr<CertificateAuthority> CertificateAuthority::Open(const std::string& given) {
  const ErrorsCleared cleared;
  if (given.empty()) {
    return absl::InvalidArgumentError(
        "FOLDER is empty; name the folder of the authority and its certificates");
  }
  std::string folder = given;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  const std::string pem_path = folder + "/ca.pem", key_path = folder + "/ca.key";
  RETURN_IF_ERROR(MakeFolder(folder, kFolderRights));
  ASSIGN_OR_RETURN(FolderLock lock, FolderLock::Take(folder));
  std::error_code error;
  const bool has_pem = std::filesystem::exists(pem_path, error);
  const bool has_key = std::filesystem::exists(key_path, error);
  auto signer = std::make_unique<Signer>();
  if (has_pem != has_key) {
    return NotOurs(has_pem ? key_path : pem_path,
                   absl::StrCat("is missing beside ", ShownName(has_pem ? pem_path : key_path),
                                kAnotherFolder));
  }
  if (has_key) {
    ASSIGN_OR_RETURN(signer->key, ReadKey(key_path));
    ASSIGN_OR_RETURN(signer->pem, ReadFile(pem_path));
    ASSIGN_OR_RETURN(signer->certificate,
                     FindCertificate(pem_path, signer->pem, key_path, signer->key.get()));
    return CertificateAuthority(folder, std::move(lock), std::move(signer), /*is_new=*/false);
  }
  signer->key = NewKey();
  signer->certificate = NewAuthority(signer->key.get());
  signer->pem = PemOf(signer->certificate.get());
  RETURN_IF_ERROR(MakeFile(key_path, PemOf(signer->key.get()), kKeyRights));
  const absl::Status written = WriteFile(pem_path, signer->pem, kCertificateRights, std::nullopt);
  if (!written.ok()) {
    unlink(key_path.c_str());  // this run's own; alone it would be refused the next time
    return written;
  }
  return CertificateAuthority(folder, std::move(lock), std::move(signer), /*is_new=*/true);
}

absl::Status CertificateAuthority::CheckDays(int days) const {
  int most = 0, seconds = 0;
  const ASN1_TIME* const end = X509_get0_notAfter(signer_->certificate.get());
  CHECK(ASN1_TIME_diff(&most, &seconds, nullptr, end) == 1) << "no time of an authority";
  if (days <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(days, " days: a certificate ends before its authority, on ", TimeText(end),
                   "; want at most ", most, ", or make a new authority in another folder"));
}

absl::Status CertificateAuthority::CheckEntry(const CertificateEntry& entry) const {
  const ErrorsCleared cleared;
  const std::string folder = absl::StrCat(folder_, "/", entry.identity.name);
  const absl::StatusOr<std::string> pem = ReadRegularFile(folder + "/tls.crt");
  if (absl::IsNotFound(pem.status())) return absl::OkStatus();
  RETURN_IF_ERROR(Annotate(pem.status(), ShownName(folder + "/tls.crt")));
  const Owned<X509> there(PEM_read_bio_X509(ReaderOf(*pem).get(), nullptr, NoPassword, nullptr));
  if (there == nullptr) return absl::OkStatus();
  const absl::StatusOr<PeerIdentity> identity = ParsePeerIdentity(UrisOf(there.get()));
  if (!identity.ok() || identity->role == entry.identity.role) return absl::OkStatus();
  return NotOurs(folder, absl::StrCat("has the certificate of the ", PeerRoleName(identity->role),
                                      " ", identity->name, ", which one of the ",
                                      PeerRoleName(entry.identity.role), " ", entry.identity.name,
                                      " would replace; take another NAME, or remove the folder"));
}

absl::Status CertificateAuthority::Issue(const CertificateEntry& entry, int days,
                                         std::optional<uid_t> owner) const {
  const ErrorsCleared cleared;
  RETURN_IF_ERROR(CheckDays(days));
  RETURN_IF_ERROR(CheckEntry(entry));
  const std::string& name = entry.identity.name;
  const Owned<EVP_PKEY> key = NewKey();
  const Owned<X509> made = NewCertificate(name, key.get(), days);
  X509* const issuer = signer_->certificate.get();
  X509_set_issuer_name(made.get(), X509_get_subject_name(issuer));
  const bool is_server =
      entry.identity.role == PeerRole::kCoordinator || entry.identity.role == PeerRole::kStage;
  Extend(made.get(), issuer, NID_basic_constraints, "critical,CA:FALSE");
  Extend(made.get(), issuer, NID_key_usage, "critical,digitalSignature");
  // A server's certificate serves in both directions: a server is a client of its neighbours.
  Extend(made.get(), issuer, NID_ext_key_usage, is_server ? "serverAuth,clientAuth" : "clientAuth");
  Extend(made.get(), issuer, NID_subject_alt_name,
         absl::StrCat(absl::StrJoin(entry.hosts, ","), ",URI:", entry.uri()));
  Extend(made.get(), issuer, NID_subject_key_identifier, "hash");
  // While an authority is replaced, old and new have one name; this tells them apart.
  if (X509_get0_subject_key_id(issuer) != nullptr) {
    Extend(made.get(), issuer, NID_authority_key_identifier, "keyid");
  }
  CHECK(X509_sign(made.get(), signer_->key.get(), EVP_sha256()) > 0) << "no signature";

  const std::string folder = absl::StrCat(folder_, "/", name);
  RETURN_IF_ERROR(MakeFolder(folder, kNameFolderRights));
  RETURN_IF_ERROR(WriteFile(folder + "/tls.key", PemOf(key.get()), kKeyRights, owner));
  RETURN_IF_ERROR(WriteFile(folder + "/tls.crt", PemOf(made.get()), kCertificateRights, owner));
  RETURN_IF_ERROR(WriteFile(folder + "/ca.pem", signer_->pem, kCertificateRights, owner));
  if (owner.has_value() && lchown(folder.c_str(), *owner, static_cast<gid_t>(-1)) != 0) {
    return SystemError(folder, "change its owner");
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
