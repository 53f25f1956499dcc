# The Debian package: `cpack -G DEB` in the build folder makes stagecoach_VERSION_ARCHITECTURE.deb of what
# StagecoachInstall.cmake installs below /usr, with settings in /etc.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME stagecoach)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR Stagecoach)
set(CPACK_PACKAGE_CONTACT "Stagecoach <stagecoach@localhost>" CACHE STRING "Maintainer that the Debian package names")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "pipeline-parallel training of neural networks over gRPC")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Stagecoach trains networks that do not fit one machine. A stage server per machine
hosts consecutive layers, a coordinator takes jobs and drives the stages, and the
client submits jobs. The servers come as systemd units; neither starts by itself.")
set(CPACK_STRIP_FILES ON)
# With DESTDIR the files below /etc come along. The programs have no RPATH: all their libraries are Debian's.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# They make the user and the folders. dpkg-shlibdeps adds the libraries.
set(CPACK_DEBIAN_PACKAGE_DEPENDS
    "systemd | systemd-standalone-sysusers, systemd | systemd-standalone-tmpfiles")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(debian ${CMAKE_SOURCE_DIR}/deploy/debian)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    ${debian}/conffiles ${debian}/postinst ${debian}/prerm ${debian}/postrm)
include(CPack)
