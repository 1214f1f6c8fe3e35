/* One interface for the models of images: the Energy Transformer, ViT and weight-shared ViT. */
#include "basin/model.h"

basin_status basin_image_net_declare(basin_image_net *net, basin_params *params,
                                     const basin_image_net_config *config) {
    net->arch = config->arch;
    if (config->arch == BASIN_IMAGE_ET) return basin_image_declare(&net->et, params, &config->et);
    basin_vit_config vit = config->vit;
    vit.shared = config->arch == BASIN_IMAGE_ALBERT;
    return basin_vit_declare(&net->vit, params, &vit);
}

basin_expr basin_image_net_forward(const basin_image_net *net, basin_expr patches,
                                   basin_expr replaced) {
    return net->arch == BASIN_IMAGE_ET ? basin_image_forward(&net->et, patches, replaced, NULL)
                                       : basin_vit_forward(&net->vit, patches, replaced);
}
