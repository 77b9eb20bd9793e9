// SPDX-License-Identifier: BSD-3-Clause
#include "networks.hpp"

#include "json_text.hpp"
#include "sys/sys.hpp"
#include "transport/fabric/libfabric.hpp"

std::string networks_json() {
  using namespace stretto;
  sys::HostAddress addresses[sys::kMostAddresses];
  transport::Libfabric::Settings settings;
  settings.addresses = addresses;
  settings.address_count = sys::host_addresses(addresses);
  std::string offers;
  const char* why = nullptr;
  const transport::ofi::Library* const library = transport::libfabric_offers(
      settings,
      [](void* context, const transport::FabricOffer& offer) {
        std::string& text = *static_cast<std::string*>(context);
        text += (text.empty() ? "" : ", ") + std::string("{\"provider\": ") + quoted(offer.provider) +
                ", \"domain\": " + quoted(offer.domain) + ", \"software\": " + (offer.is_software ? "true" : "false") +
                ", \"usable\": " + (offer.is_usable ? "true" : "false") + "}";
      },
      &offers, &why);
  std::string text = "\"card\": " + std::string(sys::rdma_card_is_here() ? "true" : "false");
  if (library == nullptr) return text + ", \"library\": null, \"error\": " + quoted(why);
  const std::string version = std::to_string(library->version >> 16) + "." + std::to_string(library->version & 0xffff);
  return text + ", \"library\": " + quoted(library->path) + ", \"version\": " + quoted(version.c_str()) +
         ", \"error\": null, \"offers\": [" + offers + "]";
}
