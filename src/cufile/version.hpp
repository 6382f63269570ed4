#pragma once
// Which version of the vendor's library we answer as. It decides the layout of the statistics,
// since no call tells which header a program was built with.

#include <string>
#include <string_view>

#include "cufile/configuration.hpp"

namespace straightway::cufile {

// That of STRAIGHTWAY_CUFILE_VERSION ("1.15" or "1150"), else of the vendor's library installed
// here, which the program would otherwise have got, else 1180. root: a prefix for its place.
int answered_version(const Configuration::Environment& environment, const std::string& root = "");

// "1.15", "1.15.1" or "1150" as 1150; 0 where it is none.
int parse_version(std::string_view text);
// Of a vendor's library, from its file's name, else from what it exports; 0 where neither tells.
int library_version(const std::string& path);

}  // namespace straightway::cufile
