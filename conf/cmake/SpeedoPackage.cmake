# Debian packages: `cpack -G DEB` in the build folder makes speedo and libspeedo-dev of what
# `cmake --install` would install in /usr.
set(SPEEDO_MAINTAINER "SpeeDO developers <speedo@example.org>" CACHE STRING
  "Who answers for the Debian packages: NAME <ADDRESS>")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME speedo)
set(CPACK_PACKAGE_VENDOR SpeeDO)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL programs development)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_BINARY_DIR}/debian/finish.cmake)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${SPEEDO_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME speedo)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
# Started and loaded by the programs, and so not seen by dpkg-shlibdeps.
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_DEPENDS "redis-server, libopenblas0")
# Authorities, for data at https:// and s3:// URIs.
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_RECOMMENDS "ca-certificates")
# What one script of the examples is written in, and what `speedo draw_net` draws with.
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS "python3, graphviz, librsvg2-bin")
# They have a program /usr/bin/caffe, too.
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONFLICTS "caffe-tools-cpu, caffe-tools-cuda")
set(CPACK_COMPONENT_PROGRAMS_DESCRIPTION
"distributed training of Caffe nets
SpeeDO trains convolutional nets that are described as Caffe's, on one machine
or on a cluster: a master decides who trains and what is merged when, workers
compute, and the shared weights live in Redis. It reads and writes Caffe's
files.
.
This package has the programs, units for systemd, which are off until they are
enabled, and examples.")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONTROL_EXTRA
  ${PROJECT_BINARY_DIR}/debian/conffiles ${PROJECT_SOURCE_DIR}/conf/debian/postinst
  ${PROJECT_SOURCE_DIR}/conf/debian/prerm ${PROJECT_SOURCE_DIR}/conf/debian/postrm)

# What the libraries need of others, besides Threads.
set(needs libfmt-dev libhdf5-dev libhiredis-dev libhwy-dev libjpeg62-turbo-dev libleveldb-dev
  liblmdb-dev libopenblas0 libpng-dev libprotobuf-dev libspdlog-dev libtiff-dev libwebp-dev libxxhash-dev
  pkg-config zlib1g-dev)
if(SPEEDO_ONEDNN)
  list(APPEND needs libdnnl-dev)
endif()
list(JOIN needs ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libspeedo-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
"distributed training of Caffe nets - libraries
Headers, static libraries and a configuration for CMake of the rooms that
SpeeDO is built of: nets, solvers, backend, stores, schedules.")

string(TIMESTAMP SPEEDO_CHANGELOG_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(conf/debian/changelog.in debian/changelog @ONLY)
configure_file(conf/debian/finish.cmake.in debian/finish.cmake @ONLY)
file(WRITE ${PROJECT_BINARY_DIR}/debian/conffiles "/etc/speedo/speedo.toml\n")
include(CPack)
