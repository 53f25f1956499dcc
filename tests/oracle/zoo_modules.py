"""Networks as PyTorch's collections have them, with their names of modules: torchvision's ResNet and ViT, timm's ViT.

Written here from their lists of names, as neither has to be installed; timm's ResNets have torchvision's names.
"""

from collections import OrderedDict
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from resnets import BLOCKS

Norm = partial(nn.LayerNorm, eps=1e-6)


def normed(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs)


class Block(nn.Module):
    def __init__(self, inputs, channels, stride, bottleneck):
        super().__init__()
        self.bottleneck, outputs = bottleneck, channels * (4 if bottleneck else 1)
        if bottleneck:
            self.conv1, self.bn1 = normed(inputs, channels, 1)
            self.conv2, self.bn2 = normed(channels, channels, 3, stride)
            self.conv3, self.bn3 = normed(channels, outputs, 1)
        else:
            self.conv1, self.bn1 = normed(inputs, channels, 3, stride)
            self.conv2, self.bn2 = normed(channels, channels, 3)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(*normed(inputs, outputs, 1, stride))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.bottleneck:
            y = self.bn3(self.conv3(F.relu(y)))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


class ResNet(nn.Module):
    def __init__(self, depth, width, classes, **_):
        super().__init__()
        self.conv1, self.bn1 = normed(3, width, 7, 2)
        inputs = width
        for stage, blocks in enumerate(BLOCKS[depth]):
            channels, made = width << stage, []
            for i in range(blocks):
                made.append(Block(inputs, channels, 2 if stage and i == 0 else 1, depth >= 50))
                inputs = channels * (4 if depth >= 50 else 1)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*made))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def rows_of(patch, image):
    """Of the class token and each patch."""
    return 1 + (image[0] // patch) * (image[1] // patch)


class TorchvisionBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = Norm(width), Norm(width)
        self.self_attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0), nn.Linear(4 * width, width), nn.Dropout(0))

    def forward(self, x):
        y = self.ln_1(x)
        x = x + self.self_attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class TorchvisionEncoder(nn.Module):
    def __init__(self, width, heads, layers, rows):
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, rows, width).normal_(std=0.02))
        self.layers = nn.Sequential(OrderedDict((f"encoder_layer_{i}", TorchvisionBlock(width, heads)) for i in range(layers)))
        self.ln = Norm(width)

    def forward(self, x):
        return self.ln(self.layers(x + self.pos_embedding))


class TorchvisionVit(nn.Module):
    def __init__(self, width, heads, layers, patch, image, classes):
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.conv_proj = nn.Conv2d(image[2], width, patch, patch)
        self.encoder = TorchvisionEncoder(width, heads, layers, rows_of(patch, image))
        self.heads = nn.Sequential(OrderedDict(head=nn.Linear(width, classes)))

    def forward(self, x):
        x = self.conv_proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], 1)
        return self.heads(self.encoder(x)[:, 0])


class TimmAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, rows, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, rows, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5).softmax(-1)
        return self.proj((scores @ v).transpose(1, 2).reshape(batch, rows, width))


class TimmMlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class TimmBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2, self.attn, self.mlp = Norm(width), Norm(width), TimmAttention(width, heads), TimmMlp(width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TimmVit(nn.Module):
    def __init__(self, width, heads, layers, patch, image, classes):
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.empty(1, rows_of(patch, image), width).normal_(std=0.02))
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(image[2], width, patch, patch)
        self.blocks = nn.Sequential(*(TimmBlock(width, heads) for _ in range(layers)))
        self.norm, self.head = Norm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patch_embed.proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])
